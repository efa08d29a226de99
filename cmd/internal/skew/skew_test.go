// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"
)

// serve returns a discovery client of a test server that uses the handler.
func serve(t *testing.T, handler http.HandlerFunc) *discovery.DiscoveryClient {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return discovery.NewDiscoveryClientForConfigOrDie(&restclient.Config{Host: server.URL})
}

func serveVersion(t *testing.T, info apimachineryversion.Info) *discovery.DiscoveryClient {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(info) })
}

func TestVersion(t *testing.T) {
	for want, info := range map[string]apimachineryversion.Info{
		"1.34": {Major: "1", Minor: "34", GitVersion: "v1.34.4"},
		"1.35": {Major: "1", Minor: "35+", GitVersion: "v1.35.2-eks-1a2b3c4"},
		"1.36": {Major: "1", Minor: "36", GitVersion: "v1.36.1-gke.1234000"},
		"1.33": {Major: "1", Minor: "37", GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "33"},
		"1.38": {Major: "1", Minor: "38+", GitVersion: "v1.38.0-alpha.2.77+0123456789abcd"},
	} {
		got, err := Version(t.Context(), serveVersion(t, info))
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	_, err := Version(t.Context(), serveVersion(t, apimachineryversion.Info{GitVersion: "new"}))
	require.ErrorContains(t, err, `the API server has an invalid version "new"`)
}

func TestCheck(t *testing.T) {
	for git, valid := range map[string]bool{"v1.33.9": false, "v1.34.0": true, "v1.37.2": true, "v2.0.0": true} {
		offered, err := Version(t.Context(), serveVersion(t, apimachineryversion.Info{GitVersion: git}))
		require.NoError(t, err)
		require.Equal(t, valid, Check(offered) == nil, git)
	}
}

func TestAwaitAsksUntilThereIsAnAnswer(t *testing.T) {
	var asked atomic.Int32
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "starting", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(apimachineryversion.Info{GitVersion: "v1.35.0"})
	})
	got, err := Await(t.Context(), client)
	require.NoError(t, err)
	require.Equal(t, "1.35", got.String())
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "starting", http.StatusServiceUnavailable)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := Await(ctx, client)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAwaitDoesNotWaitForRights(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
	})
	_, err := Await(t.Context(), client)
	require.ErrorContains(t, err, "ask the API server for its version: ")
}

func TestMissing(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/resource.k8s.io/v1" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			GroupVersion: "resource.k8s.io/v1",
			APIResources: []metav1.APIResource{{Name: "deviceclasses"}, {Name: "resourceclaims"}, {Name: "resourceslices"}},
		})
	})
	missing, err := Missing(client, Allocation...)
	require.NoError(t, err)
	require.Empty(t, missing)

	rules := resourceapi.SchemeGroupVersion.WithResource("devicetaintrules")
	groups := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"}
	missing, err = Missing(client, groups, Allocation[0], rules)
	require.NoError(t, err)
	require.Equal(t, []schema.GroupVersionResource{groups, rules}, missing)

	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) })
	_, err = Missing(broken, rules)
	require.ErrorContains(t, err, "ask the API server for the resources of resource.k8s.io/v1")
}
