// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/placement/inventory"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// fleet is the namespace of the ClusterProfiles.
const fleet = "fleet"

// shared is the hub of all tests. They run one after another.
var shared *env.Hub

func TestMain(m *testing.M) {
	env.Main(m, func(t testing.TB) {
		shared = env.StartHub(t, controlplane.Options{
			Controllers: []string{"garbage-collector-controller"}, Users: []controlplane.User{env.Placement},
		})
		shared.ApplyManifests(t, "placement/rbac.yaml")
		shared.InstallProfiles(t)
		shared.CreateFor(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}})
	})
}

// run runs the controller as celset-placement does. stop stops it.
func run(t *testing.T) (stop func()) {
	t.Helper()
	config := shared.ConfigOf(t, env.Placement.Name)
	controller.Guard(config, nil)
	where := inventory.ClusterProfiles{Namespace: fleet}
	return shared.Manage(t, config, manager.Options{Cache: where.Cache(controller.Cache())}, func(mgr manager.Manager) error {
		return controller.Add(mgr, controller.Options{Inventory: where, ProfileDecisions: true, SkipNameValidation: true})
	})
}

// A team is a namespace with a ManagedClusterSet of the same name that is bound to it.
type team string

func newTeam(t *testing.T, name string) team {
	t.Helper()
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	create(t, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}})
	create(t, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name},
	})
	return team(name)
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	shared.CreateFor(t, object)
}

// join creates the ClusterProfile of a cluster that is in the team's set.
func (of team) join(t *testing.T, name string, status profilev1alpha1.ClusterProfileStatus) *profilev1alpha1.ClusterProfile {
	t.Helper()
	return of.joinIn(t, fleet, name, status)
}

func (of team) joinIn(t *testing.T, namespace, name string, status profilev1alpha1.ClusterProfileStatus) *profilev1alpha1.ClusterProfile {
	t.Helper()
	object := &profilev1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: string(of)}},
		Spec:       profilev1alpha1.ClusterProfileSpec{ClusterManager: profilev1alpha1.ClusterManager{Name: "manager"}},
	}
	create(t, object)
	report(t, object, status)
	return object
}

// report sets the status of a profile, as its cluster manager does.
func report(t *testing.T, object *profilev1alpha1.ClusterProfile, status profilev1alpha1.ClusterProfileStatus) {
	t.Helper()
	if status.Conditions == nil {
		status.Conditions = []metav1.Condition{}
	}
	object.Status = status
	require.NoError(t, shared.Status().Update(t.Context(), object))
}

// place creates a Placement that celset decides.
func (of team) place(t *testing.T, name string, expressions ...string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: string(of), Name: name, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
	}}
	if len(expressions) > 0 {
		object.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: expressions},
		}}}
	}
	create(t, object)
	return object
}

func change[T client.Object](t *testing.T, object T, mutate func(T)) {
	t.Helper()
	require.NoError(t, env.Change(t.Context(), shared, object, mutate))
}

// selected maps the names of a Placement's PlacementDecisions to their clusters.
func (of team) selected(t *testing.T, name string) map[string][]string {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	require.NoError(t, shared.List(t.Context(), &list, client.InNamespace(of), client.MatchingLabels{clusterv1beta1.PlacementLabel: name}))
	result := map[string][]string{}
	for _, object := range list.Items {
		result[object.Name] = []string{}
		for _, decision := range object.Status.Decisions {
			result[object.Name] = append(result[object.Name], decision.ClusterName)
		}
	}
	return result
}

// published returns a Placement's PlacementDecisions of SIG Multicluster. It finds them by their label, as a consumer does.
func (of team) published(t *testing.T, name string) map[string]profilev1alpha1.PlacementDecision {
	t.Helper()
	var list profilev1alpha1.PlacementDecisionList
	require.NoError(t, shared.List(t.Context(), &list, client.InNamespace(of), client.MatchingLabels{profilev1alpha1.DecisionKeyLabel: name}))
	result := map[string]profilev1alpha1.PlacementDecision{}
	for _, object := range list.Items {
		result[object.Name] = object
	}
	return result
}

// referred maps the names of the PlacementDecisions of SIG Multicluster to their ClusterProfiles.
func (of team) referred(t *testing.T, name string) map[string][]string {
	t.Helper()
	result := map[string][]string{}
	for name, object := range of.published(t, name) {
		result[name] = []string{}
		for _, decision := range object.Decisions {
			require.Equal(t, fleet, decision.ClusterProfileRef.Namespace)
			result[name] = append(result[name], decision.ClusterProfileRef.Name)
		}
	}
	return result
}

// requireSelected waits until the Placement has one PlacementDecision of each kind (Open Cluster Management and SIG
// Multicluster), with exactly these clusters.
func (of team) requireSelected(t *testing.T, name string, clusters ...string) {
	t.Helper()
	want := map[string][]string{name + "-decision-1": append([]string{}, clusters...)}
	env.Becomes(t, want, func() map[string][]string { return of.selected(t, name) })
	env.Becomes(t, want, func() map[string][]string { return of.referred(t, name) })
}
