// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/internal/env"
)

// The tests below are user stories 1 to 5 of the proposal "New Placement APIs".

// TestStory02UserPlacesOnAuthorizedSets checks that a user who may create Placements in a namespace gets only clusters of the
// sets that are bound to it. The user can't get other clusters by naming their sets, and can't bind these sets.
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
			Namespace: s.namespace, Name: name, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"},
		}}
		object.Spec.ClusterSets = sets
		require.NoError(t, alice.Create(t.Context(), object))
		s.cleanUp(t, object)
	}
	s.requireSelected(t, "any", "one-1", "one-2", "two-1", "two-2")
	s.requireSelected(t, "first", "one-1", "one-2")
	s.requireSelected(t, "more-than-mine", "two-1", "two-2")
	s.requireSelected(t, "theirs")
	s.requireCondition(t, "theirs", clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNoIntersection)
	err := alice.Create(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "secret"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "secret"},
	})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	require.NoError(t, s.Delete(t.Context(), two))
	s.requireSelected(t, "any", "one-1", "one-2")
	s.requireSelected(t, "more-than-mine")
}

// permit allows a user to create and read Placements in the namespace.
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

// TestStory05HundredsFromThousands selects 300 of 2,000 clusters, in three PlacementDecisions. When a selected cluster is
// deleted, only one other cluster must take its place.
func TestStory05HundredsFromThousands(t *testing.T) {
	const total, wanted = 2000, 300
	s := newScene(t, "")
	s.set(t, "production", exclusive)
	s.bind(t, "production")
	s.host(t, total)
	s.place(t, "many", "numberOfClusters: 300\n"+
		`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["version"].matches("^1[.](30|31)[.]")']}}}]`)
	var want []string // names of the clusters whose version is not 1.29
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
	// Only the first PlacementDecision changes: the new cluster is its last one.
	want = slices.Insert(slices.Delete(want, 7, 8), 99, generated(451).Name)
	s.requireSelected(t, "many", want...)
}

// host creates the first n generated clusters without their status. After the test it deletes all clusters.
func (s scene) host(t testing.TB, n int) {
	t.Helper()
	parallel(t, n, func(i int) error { return s.Create(t.Context(), generated(i)) })
	s.cleanUpAll(t, &clusterv1.ManagedCluster{})
}

// The tests below are user stories 1 to 4 of the proposal "Placement extensible scheduling".

// TestScoreStory1ScoresPushedFromEachCluster lets an agent of each cluster publish its measurements as scores. An agent may
// write scores only in its cluster's namespace.
func TestScoreStory1ScoresPushedFromEachCluster(t *testing.T) {
	s := newFleet(t, "")
	agents := map[string]client.Client{}
	for _, name := range []string{"cluster1", "cluster2", "cluster3"} {
		s.join(t, name, traits{})
		agents[name] = s.agent(t, name)
	}
	s.place(t, "least-busy", best(1, "usage", cpuRatio, 1))
	for name, free := range map[string]int32{"cluster1": 12, "cluster2": 64, "cluster3": 30} {
		s.score(t, agents[name], name, "usage", cpuRatio, free)
	}
	s.requireSelected(t, "least-busy", "cluster2")
	s.score(t, agents["cluster2"], "cluster2", "usage", cpuRatio, 5)
	s.requireSelected(t, "least-busy", "cluster3")

	foreign := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "forged"}}
	err := agents["cluster2"].Create(t.Context(), foreign)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

// agent returns a client with the rights of the cluster's agent.
func (s scene) agent(t testing.TB, cluster string) client.Client {
	t.Helper()
	s.open(t, cluster)
	user := "agent-of-" + cluster
	s.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1alpha1.GroupName}, Resources: []string{"addonplacementscores", "addonplacementscores/status"}, Verbs: []string{"create", "get", "update"},
	}}})
	s.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	result := s.As(t, user)
	probe := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "probe"}}
	env.Becomes(t, true, func() bool { return result.Create(t.Context(), probe, client.DryRunAll) == nil })
	return result
}

// TestScoreStory2ScoresFromMetricsOnTheHub acts as an agent on the hub that gives all clusters a score from -100 to 100, by
// their allocatable memory.
func TestScoreStory2ScoresFromMetricsOnTheHub(t *testing.T) {
	s := newFleet(t, "")
	memory := map[string]int64{"small": 16, "medium": 64, "large": 112}
	for name, gib := range memory {
		s.join(t, name, traits{allocate: clusterv1.ResourceList{"memory": *resource.NewQuantity(gib<<30, resource.BinarySI)}})
	}
	collect := func() {
		var list clusterv1.ManagedClusterList
		require.NoError(t, s.List(t.Context(), &list))
		for _, c := range list.Items {
			quantity := c.Status.Allocatable["memory"]
			gib := quantity.Value() >> 30
			s.score(t, s, c.Name, "thanos", "memory", int32(200*(gib-16)/96-100))
		}
	}
	collect()
	s.place(t, "roomy", best(2, "thanos", "memory", 1))
	s.requireSelected(t, "roomy", "large", "medium")
	require.Equal(t, "large:100 medium:0 ", s.scores(t, "roomy"))

	changeStatus(t, s, read(t, s, "", "large", &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) {
		c.Status.Allocatable["memory"] = resource.MustParse("16Gi")
	})
	changeStatus(t, s, read(t, s, "", "small", &clusterv1.ManagedCluster{}), func(c *clusterv1.ManagedCluster) {
		c.Status.Allocatable["memory"] = resource.MustParse("32Gi")
	})
	collect()
	s.requireSelected(t, "roomy", "medium", "small")
}
