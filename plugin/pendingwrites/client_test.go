// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// turns is a rate limiter that calls wait before each request.
type turns struct {
	flowcontrol.RateLimiter
	wait func()
}

func (q *turns) Wait(context.Context) error {
	q.wait()
	return nil
}

// TestRequestsAreSentWhileTheSchedulerLeads checks that a request checks the lease after it has waited for the rate limiter.
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
	lost, leads := errors.New("lost"), true
	client, err := leaderClient(&Config{Client: kubernetes.NewForConfigOrDie(config), KubeConfig: config, Leads: func() error {
		if leads {
			return nil
		}
		return lost
	}})
	require.NoError(t, err)
	claims := client.ResourceV1().ResourceClaims("ns")
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	_, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)

	waiting.wait = func() { leads = false }
	_, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.ErrorIs(t, err, errNotSent)
	require.ErrorIs(t, err, lost)
	err = client.CoreV1().Pods("ns").Delete(t.Context(), "victim", metav1.DeleteOptions{})
	require.ErrorIs(t, err, errNotSent)
	_, err = claims.Get(t.Context(), "c", metav1.GetOptions{})
	require.NoError(t, err, "to read does no harm")
	require.Equal(t, []string{"PUT", "GET"}, sent)
}

// TestKeeping checks that the claims of a bound pod are neither changed nor deleted, and that other pods' claims can be.
func TestKeeping(t *testing.T) {
	claim := func(name string) *resourceapi.ResourceClaim {
		return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Finalizers: []string{resourceapi.Finalizer}}}
	}
	bound := &v1.Pod{
		Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{
			{Name: "kept", ResourceClaimName: new("kept")}, {Name: "made", ResourceClaimTemplateName: new("template")}, {Name: "not made", ResourceClaimTemplateName: new("template")},
		}},
		Status: v1.PodStatus{
			ResourceClaimStatuses:       []v1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: new("pod-made-x")}},
			ExtendedResourceClaimStatus: &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"},
		},
	}
	for _, name := range []string{"pod-made-x", "extended"} {
		require.Error(t, refuseProtected(Protecting(t.Context(), bound), name))
	}
	for name, kept := range map[string]bool{"kept": true, "vain": false} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientset(claim("kept"), claim("vain"))
			writes := newWrites(t, api, newKnown(), clock.RealClock{}, nil)
			claims := writes.Client().ResourceV1().ResourceClaims("default")
			ctx := Protecting(t.Context(), bound)
			changed := claim(name)
			changed.Finalizers = nil
			patch := []byte(`{"metadata": {"labels": {"a": "b"}}}`)
			_, updated := claims.Update(ctx, changed, metav1.UpdateOptions{})
			_, patched := claims.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			_, written := claims.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
			deleted := claims.Delete(ctx, name, metav1.DeleteOptions{})
			list, err := api.ResourceV1().ResourceClaims("default").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, err := range []error{updated, patched, written, deleted} {
				if kept {
					require.EqualError(t, err, "claim kept keeps its allocation, because its pod is bound")
				} else {
					require.NoError(t, err)
				}
			}
			if !kept {
				require.Len(t, list.Items, 1)
				return
			}
			require.Len(t, list.Items, 2)
			require.Equal(t, *claim("kept"), list.Items[0])
			_, err = claims.Update(t.Context(), changed, metav1.UpdateOptions{})
			require.NoError(t, err, "whoever does not know the pod as bound may")
		})
	}
}
