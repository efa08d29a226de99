// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
)

// hub is a real API server with the kinds of Open Cluster Management and the
// controller, which the tests that need it share. Each has a namespace and clusters
// of its own.
type hub struct{ *env.Hub }

func TestMain(m *testing.M) { env.Main(m, env.NoLeaks) }

// theHub starts the hub for the first test that asks for it.
var theHub = env.Share(func(t testing.TB) *hub {
	h := &hub{env.StartHub(t, controlplane.Options{
		Controllers: []string{"garbage-collector-controller", "namespace-controller", "clusterrole-aggregation-controller"},
	})}
	config := h.ConfigOf(t, controlplane.AdminUser)
	Guard(config)
	var err error
	h.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: h.Scheme()})
	must(t, err)
	h.Manage(t, config, manager.Options{Cache: Cache()}, func(mgr manager.Manager) error { return Add(mgr, Options{}) })
	return h
})

// namespace creates one for a test, and deletes it after that.
func (h *hub) namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, h.Create(t.Context(), object))
	t.Cleanup(func() { must(t, h.Delete(context.Background(), object)) })
	return object.Name
}

// decisions are the PlacementDecisions of a Placement by name.
func (h *hub) decisions(t *testing.T, object *clusterv1beta1.Placement) map[string]clusterv1beta1.PlacementDecision {
	t.Helper()
	list, _, err := decisionsOf(t.Context(), h, client.ObjectKeyFromObject(object))
	must(t, err)
	result := map[string]clusterv1beta1.PlacementDecision{}
	for _, decision := range list {
		result[decision.Name] = *decision
	}
	return result
}

// selected are the clusters in the decisions of a Placement, by the names of the
// PlacementDecisions.
func (h *hub) selected(t *testing.T, object *clusterv1beta1.Placement) map[string][]string {
	t.Helper()
	result := map[string][]string{}
	for name, decision := range h.decisions(t, object) {
		result[name] = []string{}
		for _, d := range decision.Status.Decisions {
			result[name] = append(result[name], d.ClusterName)
		}
	}
	return result
}
