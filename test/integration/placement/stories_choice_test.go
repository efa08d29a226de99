// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// User stories 1 to 5 of the proposal "New Placement APIs".

// A user who may create Placements in a namespace gets clusters of the sets that are
// bound to it, and can't have others by naming or binding them.
func TestStory02UserPlacesOnAuthorizedSets(t *testing.T) {
	s := newScene(t, "")
	for _, set := range []string{"one", "two", "secret"} {
		s.set(t, set, exclusive)
		s.join(t, set+"-1", traits{set: set})
		s.join(t, set+"-2", traits{set: set})
	}
	s.bind(t, "one")
	two := s.bind(t, "two")
	alice := s.As(t, "alice")
	s.permit(t, "alice")

	for name, sets := range map[string][]string{"any": nil, "first": {"one"}, "more-than-mine": {"two", "secret"}, "theirs": {"secret"}} {
		object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Annotations: map[string]string{placement.TakeAnnotation: "true"},
		}}
		object.Spec.ClusterSets = sets
		require.NoError(t, alice.Create(t.Context(), object))
		s.cleanUp(t, object)
	}
	s.requireSelected(t, "any", "one-1", "one-2", "two-1", "two-2")
	s.requireSelected(t, "first", "one-1", "one-2")
	s.requireSelected(t, "more-than-mine", "two-1", "two-2")
	s.requireSelected(t, "theirs")
	s.requireCondition(t, "theirs", clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNoIntersection)
	err := alice.Create(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "secret"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "secret"},
	})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	require.NoError(t, s.Delete(t.Context(), two))
	s.requireSelected(t, "any", "one-1", "one-2")
	s.requireSelected(t, "more-than-mine")
}

// permit lets somebody create and read Placements in the namespace.
func (s scene) permit(t testing.TB, user string) {
	t.Helper()
	s.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"placements"}, Verbs: []string{"create", "get"},
	}}})
	s.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	probe := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}}
	env.Becomes(t, true, func() bool { return s.As(t, user).Create(t.Context(), probe, client.DryRunAll) == nil })
}

// Of 2,000 clusters 300 are selected, in three PlacementDecisions; when a selected one
// leaves, one other takes its place.
func TestStory05HundredsFromThousands(t *testing.T) {
	const total, wanted = 2000, 300
	s := newScene(t, "")
	s.set(t, "production", exclusive)
	s.bind(t, "production")
	s.host(t, total)
	s.place(t, "many", "numberOfClusters: 300\n"+
		`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["version"].matches("^1[.](30|31)[.]")']}}}]`)
	var want []string // those with version 1.29 are not among them
	for i := 0; len(want) < wanted; i++ {
		if i%3 != 0 {
			want = append(want, generated(i).Name)
		}
	}
	s.requireSelected(t, "many", want...)
	s.requireSatisfied(t, "many")
	require.Equal(t, []clusterv1beta1.DecisionGroupStatus{{
		Decisions: []string{"many-decision-1", "many-decision-2", "many-decision-3"}, ClustersCount: wanted,
	}}, s.live(t, "many").Status.DecisionGroups)

	require.NoError(t, s.Delete(t.Context(), read(t, s, "", want[7], &clusterv1.ManagedCluster{})))
	// It is the last one in the first PlacementDecision, where the other one was.
	want = slices.Insert(slices.Delete(want, 7, 8), 99, generated(451).Name)
	s.requireSelected(t, "many", want...)
}

// host creates generated clusters, without status, and deletes them all at once.
func (s scene) host(t testing.TB, n int) {
	t.Helper()
	parallel(t, n, func(i int) error { return s.Create(t.Context(), generated(i)) })
	s.cleanUpAll(t, &clusterv1.ManagedCluster{})
}
