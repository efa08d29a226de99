// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/indoubt"
)

// clientHandle has a client and its configuration.
type clientHandle struct {
	fwk.Handle
	config *rest.Config
	client kubernetes.Interface
}

func (h clientHandle) KubeConfig() *rest.Config { return h.config }

func (h clientHandle) ClientSet() kubernetes.Interface { return h.client }

// turns is a client's share of requests, for which each waits.
type turns struct {
	flowcontrol.RateLimiter
	wait func()
}

func (q *turns) Wait(context.Context) error {
	q.wait()
	return nil
}

// TestRequestsAreSentWhileTheSchedulerLeads: it does not suffice that it led before a request waited.
func TestRequestsAreSentWhileTheSchedulerLeads(t *testing.T) {
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Method)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c"}}`))
	}))
	t.Cleanup(server.Close)
	waiting := &turns{RateLimiter: flowcontrol.NewFakeAlwaysRateLimiter(), wait: func() {}}
	config := &rest.Config{Host: server.URL, RateLimiter: waiting}
	handle := clientHandle{config: config, client: kubernetes.NewForConfigOrDie(config)}
	lost, leads := errors.New("lost"), true
	client, err := leasedClient(handle, func() error {
		if leads {
			return nil
		}
		return lost
	})
	require.NoError(t, err)
	claims := client.ResourceV1().ResourceClaims("ns")
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	_, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)

	waiting.wait = func() { leads = false }
	_, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.ErrorIs(t, err, indoubt.ErrNotSent)
	require.ErrorIs(t, err, lost)
	err = client.CoreV1().Pods("ns").Delete(t.Context(), "victim", metav1.DeleteOptions{})
	require.ErrorIs(t, err, indoubt.ErrNotSent)
	_, err = claims.Get(t.Context(), "c", metav1.GetOptions{})
	require.NoError(t, err, "to read does no harm")
	require.Equal(t, []string{"PUT", "GET"}, sent)

	client, err = leasedClient(clientHandle{client: handle.client}, nil)
	require.NoError(t, err)
	require.Same(t, handle.client, client)
}
