// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/placement"
)

// The first proposal of the Placement API had fields that are not in v1beta1. What
// takes their place does the same.

// antiAffinity: all selected clusters differ in a label or claim. Spreading does so as long as
// there is a value for each cluster that is wanted, and then begins again; antiAffinity ends.
func TestSpreadIsAntiAffinityWhileThereAreValues(t *testing.T) {
	for _, kind := range []string{"Label", "Claim"} {
		constraint := `{topologyKey: region, topologyKeyType: ` + kind + `, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}`
		for name, test := range map[string]struct {
			spec    string
			regions []string
			want    []string
		}{
			"as many as regions":                {`numberOfClusters: 3`, []string{"a", "a", "b", "b", "c"}, []string{"a0", "b2", "c4"}},
			"one more: two of a region":         {`numberOfClusters: 4`, []string{"a", "a", "b", "b", "c"}, []string{"a0", "a1", "b2", "c4"}},
			"no number: two of several regions": {``, []string{"a", "a", "b", "b", "c"}, []string{"a0", "a1", "b2", "b3", "c4"}},
			"no number: the skew ends it":       {``, []string{"a", "a", "a", "b"}, []string{"a0", "a1", "b3"}},
			"two of the only region":            {`numberOfClusters: 2`, []string{"a", "a"}, []string{"a0", "a1"}},
			"the bound of a strict form":        {`numberOfClusters: 1`, []string{"a", "a"}, []string{"a0"}},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				require.Equal(t, test.want, selected(t, schedule(t, placed(t, spreadOver(test.spec, constraint)), hubOfRegions(test.regions...))))
			})
		}
	}
}

// predicates[].clusterName: the label "name", which every cluster has, or CEL.
func TestClusterNameIsALabelOrCEL(t *testing.T) {
	h := newHub(managed("a", "name=a"), managed("b", "name=b"))
	for _, spec := range []string{
		`predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {name: b}}}}]`,
		withExpressions(`managedCluster.metadata.name == "b"`),
	} {
		require.Equal(t, []string{"b"}, selected(t, schedule(t, placed(t, spec), h)))
	}
}

// claimSelector.matchClaims: matchExpressions with In.
func TestMatchClaimsIsMatchExpressions(t *testing.T) {
	h := newHub(claiming(managed("a"), "version.openshift.io=4.5.8"), claiming(managed("b"), "version.openshift.io=4.6.1"), managed("c"))
	spec := `predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: version.openshift.io, operator: In, values: [4.5.8]}]}}}]`
	require.Equal(t, []string{"a"}, selected(t, schedule(t, placed(t, spec), h)))
}

// decisions[].available: clusters that are not available have a taint.
func TestUnavailableClustersAreTainted(t *testing.T) {
	h := newHub(
		tainting(managed("a"), clusterv1.ManagedClusterTaintUnavailable, "NoSelect"),
		tainting(managed("b"), clusterv1.ManagedClusterTaintUnreachable, "NoSelect"), managed("c"))
	h.decided("ns", "p", "a", "b", "c")
	require.Equal(t, []string{"c"}, selected(t, schedule(t, placed(t, ``), h)), "nothing is tolerated by default")
	spec := `tolerations: [{key: cluster.open-cluster-management.io/unreachable, operator: Exists}]`
	require.Equal(t, []string{"b", "c"}, selected(t, schedule(t, placed(t, spec), h)))
}

// The set "global" has every cluster; who binds it can place anywhere.
func TestGlobalSet(t *testing.T) {
	h := newHub(managed("a", setLabel+"=one"), managed("b"))
	require.Equal(t, []string{"a", "b"}, selected(t, schedule(t, placed(t, `clusterSets: [global]`), h)))
	h.bindings = []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "default")}
	h.sets = append(h.sets, exclusiveSet("default"))
	h.clusters = append(h.clusters, managed("c", setLabel+"=default"))
	require.Equal(t, []string{"c"}, selected(t, schedule(t, placed(t, ``), h)))
}

// A workload moves to the backup when the primary is tainted, and back.
func TestDisasterRecovery(t *testing.T) {
	h, s := newHub(managed("backup"), managed("primary")), newScheduler(t)
	h.score("primary", "disasterrecovery", map[string]int32{"workload": 100})
	h.score("backup", "disasterrecovery", map[string]int32{"workload": 0})
	object := placed(t, "numberOfClusters: 1\n"+exactly()+addOn("disasterrecovery", "workload", 1))
	decide := func() []string {
		result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
		require.NoError(t, err)
		h.apply(object, result)
		return selected(t, result)
	}
	require.Equal(t, []string{"primary"}, decide())
	h.update(1, func(c *clusterv1.ManagedCluster) { tainting(c, clusterv1.ManagedClusterTaintUnavailable, "NoSelect") })
	require.Equal(t, []string{"backup"}, decide())
	h.update(1, func(c *clusterv1.ManagedCluster) { c.Spec.Taints = nil })
	require.Equal(t, []string{"primary"}, decide())
}

// The same scores select the best cluster and, with a negative weight, the worst.
func TestBestAndWorst(t *testing.T) {
	h := newHub(several("a", "b", "c")...)
	for i, name := range []string{"a", "b", "c"} {
		h.score(name, "default", map[string]int32{"cpuratio": []int32{50, 88, -7}[i]})
	}
	for weight, want := range map[int]string{1: "b", -1: "c"} {
		require.Equal(t, []string{want}, selected(t, schedule(t, placed(t, "numberOfClusters: 1\n"+exactly()+addOn("default", "cpuratio", weight)), h)))
	}
}

// Steady against scores that change: three times its weight keeps a cluster until
// another is better by more than that.
func TestSteadyOutweighsSmallDifferences(t *testing.T) {
	h := newHub(several("a", "b")...)
	object := placed(t, "numberOfClusters: 1\n"+exactly("Steady 1")+addOn("default", "cpuratio", 3))
	for _, step := range []struct {
		a, b int32
		want string
	}{{50, 49, "a"}, {50, 80, "a"}, {50, 90, "b"}, {80, 90, "b"}} {
		h.score("a", "default", map[string]int32{"cpuratio": step.a})
		h.score("b", "default", map[string]int32{"cpuratio": step.b})
		result := schedule(t, object, h)
		h.apply(object, result)
		require.Equal(t, []string{step.want}, selected(t, result), fmt.Sprint(step))
	}
}

// Expired scores are no scores, in CEL as for prioritizers: a cluster that is
// selected by a score leaves when it expires, and the result says when that is.
func TestExpiredScores(t *testing.T) {
	h, s := newHub(several("a", "b")...), newScheduler(t)
	h.score("a", "r", map[string]int32{"s": 5}).Status.ValidUntil = &metav1.Time{Time: now.Add(time.Minute)}
	h.score("b", "r", map[string]int32{"s": 5})
	object := placed(t, withExpressions(`managedCluster.scores("r").exists(s, s.name == "s" && s.value > 4)`))
	result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, selected(t, result))
	require.Equal(t, now.Add(time.Minute+time.Nanosecond), result.Requeue)
	result, err = s.Schedule(t.Context(), object, h.snapshot(), result.Requeue)
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, selected(t, result))
	require.True(t, result.Requeue.IsZero())
	requireCondition(t, result, placement.ConditionEvaluationFailed, metav1.ConditionTrue, placement.ReasonEvaluationFailed, "AddOnPlacementScore a/r expired at 2026-08-01T12:01:00Z")
}
