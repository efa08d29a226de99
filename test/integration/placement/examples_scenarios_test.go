// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/test/internal/env"
)

// The examples of the proposal "New Placement APIs": its two scenarios.

const openShiftVersion = "version.openshift.io"

// unavailable is the taint of an unavailable cluster.
var unavailable = []clusterv1.Taint{{Key: clusterv1.ManagedClusterTaintUnavailable, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.Unix(1, 0)}}

// newScenario creates the clusters of the proposal, and clusters that no Placement of the proposal selects. The second cluster
// of the proposal is unavailable.
func newScenario(t testing.TB, namespace string) scene {
	t.Helper()
	s := newScene(t, namespace)
	s.set(t, "clusterset1", exclusive)
	openShift := traits{set: "clusterset1", labels: map[string]string{"vendor": "OpenShift"}, claims: map[string]string{openShiftVersion: "4.5.8"}}
	s.join(t, "cluster1", openShift)
	s.join(t, "cluster3", openShift)
	openShift.taints = unavailable
	s.join(t, "cluster2", openShift)
	s.join(t, "other-vendor", traits{set: "clusterset1", labels: map[string]string{"vendor": "Other"}, claims: map[string]string{openShiftVersion: "4.5.8"}})
	s.join(t, "other-set", traits{set: "clusterset2", labels: map[string]string{"vendor": "OpenShift"}, claims: map[string]string{openShiftVersion: "4.5.8"}})
	return s
}

// examplePlacementDecision checks that the PlacementDecision in a file is the decision for the Placement in another file.
func examplePlacementDecision(t *testing.T, file string) {
	s := newScenario(t, "ns1")
	want := &clusterv1beta1.PlacementDecision{}
	documents := s.documents(t, file)
	require.Len(t, documents, 1)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(documents[0].Object, want, true))

	s.apply(t, "examples/placement/clusterset-binding.yaml")
	s.requireSelected(t, "placement1", "cluster1", "cluster3")
	got := read(t, s, want.Namespace, want.Name, &clusterv1beta1.PlacementDecision{})
	require.True(t, metav1.IsControlledBy(got, s.live(t, "placement1")))
	require.Empty(t, cmp.Diff(want.Labels, got.Labels))
	require.Empty(t, cmp.Diff(want.Status, got.Status))
}

// exampleServiceAccount tests scenario 2: the ManagedClusterSetBinding exists as long as the ServiceAccount has the right to
// bind the set.
func exampleServiceAccount(t *testing.T, file string) {
	s := newScenario(t, "ns2")
	s.join(t, "other-version", traits{set: "clusterset1", labels: map[string]string{"vendor": "OpenShift"}, claims: map[string]string{openShiftVersion: "4.6.1"}})
	s.set(t, "clusterset2", exclusive)
	s.apply(t, file)
	s.requireSelected(t, "placement1", "cluster1", "cluster3")
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	require.NoError(t, s.List(t.Context(), &bindings, client.InNamespace("ns2")))
	require.Len(t, bindings.Items, 1, "only one set is granted")
	require.Equal(t, "clusterset1", bindings.Items[0].Name)
	require.Equal(t, "ServiceAccount", metav1.GetControllerOf(&bindings.Items[0]).Kind)

	const role = "open-cluster-management:managedclusterset:clusterset1"
	change(t, s, read(t, s, "", role, &rbacv1.ClusterRole{}), func(role *rbacv1.ClusterRole) {
		role.Rules[0].ResourceNames = []string{"clusterset1", "clusterset2"}
	})
	s.requireSelected(t, "placement1", "cluster1", "cluster3", "other-set")
	require.NoError(t, s.Delete(t.Context(), read(t, s, "", role+":ns2:placement", &rbacv1.ClusterRoleBinding{})))
	s.requireSelected(t, "placement1")
	s.requireCondition(t, "placement1", clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNoBindings)
}

// TestScenario2ServiceAccountsBindWhatTheyMay checks that a ServiceAccount's right to bind sets leads to bindings only in its
// own namespace. A right to all sets also covers sets that are created later. When the account is deleted, its bindings are
// deleted.
func TestScenario2ServiceAccountsBindWhatTheyMay(t *testing.T) {
	some, all := newScene(t, ""), newScene(t, "")
	for _, set := range []string{"eu", "us"} {
		some.set(t, set, exclusive)
		some.join(t, set+"-1", traits{set: set})
	}
	some.grant(t, "bind-eu", "eu")
	all.grant(t, "bind-all")
	account := all.account(t)
	some.account(t)
	some.place(t, "placement1", `{}`)
	all.place(t, "placement1", `{}`)
	some.requireSelected(t, "placement1", "eu-1")
	all.requireSelected(t, "placement1", "eu-1", "us-1")

	some.set(t, "cn", exclusive)
	some.join(t, "cn-1", traits{set: "cn"})
	all.requireSelected(t, "placement1", "cn-1", "eu-1", "us-1")
	require.NoError(t, all.Delete(t.Context(), account))
	all.requireSelected(t, "placement1")
	all.requireCondition(t, "placement1", clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNoBindings)
	some.requireSelected(t, "placement1", "eu-1")
}

// grant gives the namespace's ServiceAccount the right to bind the sets, or all sets if none is named.
func (s scene) grant(t testing.TB, role string, sets ...string) {
	t.Helper()
	s.create(t, bindRole(role, sets...))
	s.create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: refTo(role), Subjects: s.subjects()})
}

func bindRole(name string, sets ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta2.GroupName}, Resources: []string{"managedclustersets/bind"}, ResourceNames: sets, Verbs: []string{"create"},
	}}}
}

func refTo(role string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
}

// subjects returns the namespace's ServiceAccount as the subject of a role binding.
func (s scene) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: binding.ServiceAccount}}
}

// TestScenario2ServiceAccountDoesNotBindByRoleBinding checks that a RoleBinding leads to no ManagedClusterSetBinding, because
// it grants no rights to cluster-scoped objects.
func TestScenario2ServiceAccountDoesNotBindByRoleBinding(t *testing.T) {
	s := newScenario(t, "")
	object := s.place(t, "placement1", `{}`)
	s.account(t)
	s.create(t, bindRole("bind-clusterset1", "clusterset1"))
	s.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bind"}, RoleRef: refTo("bind-clusterset1"), Subjects: s.subjects(),
	})
	s.requireCondition(t, object.Name, clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNoBindings)
	// Wait for the effect of a ClusterRoleBinding that another account gets later. Then the controller has also handled the
	// RoleBinding.
	other := newScene(t, "")
	other.account(t)
	other.grant(t, "bind-other", "clusterset1")
	env.Becomes(t, true, func() bool { return other.bound(t, "clusterset1") == nil })
	require.True(t, apierrors.IsNotFound(s.bound(t, "clusterset1")))
}

// bound returns an error unless a set is bound to the namespace.
func (s scene) bound(t testing.TB, set string) error {
	return s.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: set}, &clusterv1beta2.ManagedClusterSetBinding{})
}
