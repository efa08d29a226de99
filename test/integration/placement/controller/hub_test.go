// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// A hub is an API server with the kinds of Open Cluster Management, on which the controller runs.
type hub struct{ *env.Hub }

func TestMain(m *testing.M) { env.Main(m, env.NoLeaks) }

// theHub returns the hub that all tests share.
var theHub = env.Share(func(t testing.TB) *hub {
	h := &hub{env.StartHub(t, controlplane.Options{
		Controllers: []string{"garbage-collector-controller", "namespace-controller", "clusterrole-aggregation-controller"},
	})}
	config := h.ConfigOf(t, controlplane.AdminUser)
	controller.Guard(config, nil)
	var err error
	h.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: h.Scheme()})
	must(t, err)
	h.Manage(t, config, manager.Options{Cache: controller.Cache()}, func(mgr manager.Manager) error {
		return controller.Add(mgr, controller.Options{})
	})
	return h
})

// namespace creates a namespace, and deletes it after the test.
func (h *hub) namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, h.Create(t.Context(), object))
	t.Cleanup(func() { must(t, h.Delete(context.Background(), object)) })
	return object.Name
}

// decisions returns the PlacementDecisions of a Placement by name.
func (h *hub) decisions(t *testing.T, object *clusterv1beta1.Placement) map[string]clusterv1beta1.PlacementDecision {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	must(t, h.List(t.Context(), &list, client.InNamespace(object.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: object.Name}))
	result := map[string]clusterv1beta1.PlacementDecision{}
	for _, decision := range list.Items {
		result[decision.Name] = decision
	}
	return result
}

// selected maps the names of a Placement's PlacementDecisions to their clusters.
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

func must(t testing.TB, err error) {
	t.Helper()
	require.NoError(t, err)
}

// patience is the limit for each wait.
const patience = 2 * time.Minute

// eventually waits until get returns want. On failure it shows the difference.
func eventually[T any](t *testing.T, want T, get func() T) {
	t.Helper()
	var difference string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if difference = cmp.Diff(want, get()); difference == "" {
			return
		}
	}
	t.Fatalf("(-want +got):\n%s", difference)
}

// A fleet is a namespace with a ManagedClusterSet of the same name that is bound to it.
type fleet struct {
	*hub
	name string
}

func newFleet(t *testing.T) fleet {
	t.Helper()
	h := theHub(t)
	f := fleet{h, h.namespace(t)}
	f.create(t, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: f.name}})
	f.create(t, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: f.name},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: f.name},
	})
	return f
}

// create creates an object, and deletes it after the test if it still exists.
func (f fleet) create(t *testing.T, object client.Object) {
	t.Helper()
	must(t, f.Create(t.Context(), object))
	if object.GetNamespace() == "" {
		t.Cleanup(func() { must(t, client.IgnoreNotFound(f.Delete(context.Background(), object))) })
	}
}

// join creates a cluster in the set of the fleet.
func (f fleet) join(t *testing.T, name string, labels map[string]string) *clusterv1.ManagedCluster {
	t.Helper()
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: f.name + "-" + name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: f.name},
	}}
	for key, value := range labels {
		object.Labels[key] = value
	}
	f.create(t, object)
	return object
}

// place creates a Placement that celset decides. If there are expressions, it selects clusters by them.
func (f fleet) place(t *testing.T, name string, expressions ...string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.name, Name: name, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
	}}
	object.Spec.Predicates = predicates(expressions...)
	f.create(t, object)
	return object
}

func predicates(expressions ...string) []clusterv1beta1.ClusterPredicate {
	if len(expressions) == 0 {
		return nil
	}
	return []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: expressions},
	}}}
}

// change applies mutate to an object and patches it.
func change[T client.Object](t *testing.T, f fleet, object T, mutate func(T)) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	mutate(object)
	must(t, f.Patch(t.Context(), object, client.MergeFrom(before)))
}

// names returns the full names of clusters that join has created.
func (f fleet) names(names ...string) []string {
	result := []string{}
	for _, name := range names {
		result = append(result, f.name+"-"+name)
	}
	return result
}

// requireSelected waits until the Placement has a single PlacementDecision with exactly these clusters.
func (f fleet) requireSelected(t *testing.T, object *clusterv1beta1.Placement, names ...string) {
	t.Helper()
	want := map[string][]string{object.Name + "-decision-1": f.names(names...)}
	eventually(t, want, func() map[string][]string { return f.selected(t, object) })
}

// condition returns status and reason of a condition. It returns "" if the condition is not for the current generation.
func (f fleet) condition(t *testing.T, object *clusterv1beta1.Placement, kind string) string {
	t.Helper()
	live := &clusterv1beta1.Placement{}
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(object), live))
	c := meta.FindStatusCondition(live.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != live.Generation {
		return ""
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

func (f fleet) requireCondition(t *testing.T, object *clusterv1beta1.Placement, kind, want string) {
	t.Helper()
	eventually(t, want, func() string { return f.condition(t, object, kind) })
}

// namespaceOf returns the namespace of a cluster on the hub.
func namespaceOf(object *clusterv1.ManagedCluster) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Name}}
}
