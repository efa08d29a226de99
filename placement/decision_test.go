// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/placement"
)

func TestNumberOfClusters(t *testing.T) {
	for name, test := range map[string]struct {
		number *int32
		want   []string
		status metav1.ConditionStatus
		reason string
		text   string
	}{
		"all":      {nil, []string{"a", "b", "c"}, metav1.ConditionTrue, placement.ReasonScheduled, "All cluster decisions scheduled"},
		"some":     {number(2), []string{"a", "b"}, metav1.ConditionTrue, placement.ReasonScheduled, "All cluster decisions scheduled"},
		"too many": {number(5), []string{"a", "b", "c"}, metav1.ConditionFalse, placement.ReasonNotScheduled, "2 cluster decisions unscheduled (4 clusters available, Predicate removed 0, TaintToleration removed 1)"},
		"none":     {number(0), []string{}, metav1.ConditionFalse, placement.ReasonNoneMatched, "No ManagedCluster matches any of the cluster predicate"},
	} {
		t.Run(name, func(t *testing.T) {
			object := placed(t, ``)
			object.Spec.NumberOfClusters = test.number
			result := schedule(t, object, newHub(append(several("c", "a", "b"), tainting(managed("x"), "t", "NoSelect"))...))
			require.Equal(t, test.want, selected(t, result))
			requireSatisfied(t, result, test.status, test.reason, test.text)
		})
	}
}

func TestSatisfied(t *testing.T) {
	for name, test := range map[string]struct {
		spec    string
		change  func(*hub)
		reason  string
		message string
	}{
		"no binding":                     {``, func(h *hub) { h.bindings = nil }, placement.ReasonNoBindings, "No valid ManagedClusterSetBindings found in placement namespace"},
		"a binding of no set":            {``, func(h *hub) { h.sets = nil }, placement.ReasonNoBindings, "No valid"},
		"no intersection":                {`clusterSets: [a, b]`, func(*hub) {}, placement.ReasonNoIntersection, "None of ManagedClusterSets [a,b] is bound to placement namespace"},
		"empty sets":                     {``, func(h *hub) { h.clusters = nil }, placement.ReasonSetsEmpty, "All ManagedClusterSets [global] have no member ManagedCluster"},
		"no match":                       {withExpressions(`false`), func(*hub) {}, placement.ReasonNoneMatched, "No ManagedCluster matches any of the cluster predicate (1 clusters available, Predicate removed 1, TaintToleration removed 0)"},
		"no binding, also misconfigured": {withExpressions(`1`), func(h *hub) { h.bindings = nil }, placement.ReasonNoBindings, "No valid"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(several("a")...)
			h.decided("ns", "p", "a")
			test.change(h)
			result := schedule(t, placed(t, test.spec), h)
			requireSatisfied(t, result, metav1.ConditionFalse, test.reason, test.message)
			require.Empty(t, selected(t, result), "there is nothing to select: that is no error")
			require.Len(t, result.Decision.Groups, 1)
			require.Len(t, result.Conditions, 3)
		})
	}
}

func TestObjects(t *testing.T) {
	h := newHub(managed("b", "ring=one"), managed("a"))
	h.sets = append(h.sets, exclusiveSet("x"))
	object := placed(t, grouped(`decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {ring: one}}}}]`)+"\nprioritizerPolicy: {mode: Exact}\n")
	objects := schedule(t, object, h).Decision.Objects(object)
	want := func(name, index, group, cluster string) *clusterv1beta1.PlacementDecision {
		return &clusterv1beta1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name,
				Labels: map[string]string{
					"cluster.open-cluster-management.io/placement":            "p",
					"cluster.open-cluster-management.io/decision-group-index": index,
					"cluster.open-cluster-management.io/decision-group-name":  group,
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "cluster.open-cluster-management.io/v1beta1", Kind: "Placement", Name: "p", UID: "p",
					Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
				}},
			},
			Status: clusterv1beta1.PlacementDecisionStatus{Decisions: []clusterv1beta1.ClusterDecision{
				{ClusterName: cluster, Reason: "in ManagedClusterSet global"},
			}},
		}
	}
	require.Empty(t, cmp.Diff([]*clusterv1beta1.PlacementDecision{
		want("p-decision-1", "0", "canary", "b"), want("p-decision-2", "1", "", "a"),
	}, objects))
}

func TestEmptyDecisionIsOneEmptyObject(t *testing.T) {
	object := placed(t, ``)
	objects := schedule(t, object, newHub()).Decision.Objects(object)
	require.Len(t, objects, 1)
	require.Equal(t, "p-decision-1", objects[0].Name)
	require.Equal(t, []clusterv1beta1.ClusterDecision{}, objects[0].Status.Decisions, "not null, which the API server refuses")
}

func TestSortBy(t *testing.T) {
	h := newHub(several("a", "b", "c", "d")...)
	for i, name := range []string{"a", "b", "c", "d"} {
		h.score(name, "r", map[string]int32{"s": []int32{1, 3, 2, 3}[i]})
	}
	for order, want := range map[string][]string{
		"": {"a", "b", "c", "d"}, "sortBy: ClusterName\n": {"a", "b", "c", "d"}, "sortBy: Score\n": {"b", "d", "c", "a"},
	} {
		result := schedule(t, placed(t, order+exactly()+addOn("r", "s", 1)), h)
		require.Equal(t, want, selected(t, result), order)
	}
	requireMisconfigured(t, schedule(t, placed(t, `sortBy: Luck`), h), `Selection:spec.sortBy: unknown order "Luck"; use ClusterName or Score`)
}

func scoresIn(result *placement.Result) map[string]int64 {
	all := map[string]int64{}
	for _, group := range result.Decision.Groups {
		for _, slice := range group.Slices {
			for _, d := range slice.Decisions {
				all[d.ClusterName] = d.Score
			}
		}
	}
	return all
}

func TestScoreRateLimit(t *testing.T) {
	for name, test := range map[string]struct {
		limit string
		wait  time.Duration
	}{
		"default": {``, time.Minute}, "seconds": {`10s`, 10 * time.Second}, "hours": {`2h`, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newHub(several("a", "b", "c")...), newScheduler(t)
			spec := "numberOfClusters: 2\nsortBy: Score\n" + exactly() + addOn("r", "s", 1)
			if test.limit != "" {
				spec += "scoreRateLimit: " + test.limit + "\n"
			}
			object := placed(t, spec)
			at := func(when time.Time, a, b int32) *placement.Result {
				h.score("a", "r", map[string]int32{"s": a})
				h.score("b", "r", map[string]int32{"s": b})
				result, err := s.Schedule(t.Context(), object, h.snapshot(), when)
				require.NoError(t, err)
				h.apply(object, result)
				return result
			}
			result := at(now, 10, 20)
			require.Equal(t, map[string]int64{"a": 10, "b": 20}, scoresIn(result))
			require.True(t, result.Decision.ScoresUpdated)
			require.Equal(t, now, object.Status.LastScoreUpdateTime.Time)
			require.True(t, result.Requeue.IsZero())

			result = at(now.Add(test.wait/2), 30, 20)
			require.Equal(t, map[string]int64{"a": 10, "b": 20}, scoresIn(result), "it is too early")
			require.Equal(t, []string{"b", "a"}, selected(t, result), "also for another order")
			require.Equal(t, now.Add(test.wait), result.Requeue)
			require.False(t, result.Decision.ScoresUpdated)
			require.Equal(t, now, object.Status.LastScoreUpdateTime.Time)

			result = at(result.Requeue, 30, 20)
			require.Equal(t, map[string]int64{"a": 30, "b": 20}, scoresIn(result))
			require.Equal(t, []string{"a", "b"}, selected(t, result))
			require.Equal(t, now.Add(test.wait), object.Status.LastScoreUpdateTime.Time)

			result = at(now.Add(test.wait+time.Second), -30, 20)
			require.Equal(t, map[string]int64{"b": 20, "c": 0}, scoresIn(result), "another selection has its scores at once")
		})
	}
}

func TestScoreRateLimitWithClockAhead(t *testing.T) {
	h, object := newHub(several("a")...), placed(t, ``)
	h.decided("ns", "p", "a")
	object.Status.LastScoreUpdateTime = &metav1.Time{Time: now.Add(time.Hour)}
	require.Equal(t, map[string]int64{"a": 200}, scoresIn(schedule(t, object, h)), "a time that is not yet limits nothing")
}

func TestBadSelections(t *testing.T) {
	for spec, message := range map[string]string{
		`numberOfClusters: -1`:                        `Selection:spec.numberOfClusters: the number -1 is negative; leave it out to select all`,
		`scoreRateLimit: soon`:                        `Selection:spec.scoreRateLimit: "soon" is no duration; write a number and a unit, such as 1m`,
		`scoreRateLimit: "-1s"`:                       `Selection:spec.scoreRateLimit: "-1s" is no duration`,
		`scoreRateLimit: 99999999999999999999999999h`: `Selection:spec.scoreRateLimit: `,
	} {
		requireMisconfigured(t, schedule(t, placed(t, spec), newHub(several("a")...)), message)
	}
	object := placed(t, ``)
	object.Name = "a-name-of-sixty-four-characters-is-longer-than-any-label-value-is"
	requireMisconfigured(t, schedule(t, object, newHub(several("a")...)), "as which PlacementDecisions have it: must be no more than 63")
}

func TestStatus(t *testing.T) {
	h := newHub(several("a", "b", "c")...)
	object := placed(t, grouped(`clustersPerDecisionGroup: 2`))
	object.Status.Conditions = []metav1.Condition{
		{Type: "Other", Status: metav1.ConditionTrue, Reason: "Stays"},
		{Type: "PlacementSatisfied", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
		{Type: "PlacementMisconfigured", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
	}
	before := object.DeepCopy()
	result := schedule(t, object, h)
	status := result.ApplyTo(object.Status)
	require.Equal(t, before, object, "nothing is modified")
	require.EqualValues(t, 3, status.NumberOfSelectedClusters)
	require.Equal(t, []clusterv1beta1.DecisionGroupStatus{
		{DecisionGroupIndex: 0, Decisions: []string{"p-decision-1"}, ClustersCount: 2},
		{DecisionGroupIndex: 1, Decisions: []string{"p-decision-2"}, ClustersCount: 1},
	}, status.DecisionGroups)
	require.Len(t, status.Conditions, 4)
	require.Equal(t, now.Add(-time.Hour), meta.FindStatusCondition(status.Conditions, "PlacementSatisfied").LastTransitionTime.Time)
	require.Equal(t, now, meta.FindStatusCondition(status.Conditions, "PlacementMisconfigured").LastTransitionTime.Time)
	require.EqualValues(t, 1, meta.FindStatusCondition(status.Conditions, "PlacementSatisfied").ObservedGeneration)

	h.apply(object, result)
	object.Spec.NumberOfClusters, object.Generation = number(-1), 2
	stands := schedule(t, object, h).ApplyTo(object.Status)
	require.Equal(t, object.Status.NumberOfSelectedClusters, stands.NumberOfSelectedClusters)
	require.Equal(t, object.Status.DecisionGroups, stands.DecisionGroups)
	require.True(t, meta.IsStatusConditionTrue(stands.Conditions, "PlacementMisconfigured"))
	// The PlacementDecisions were written, and the Placement became wrong before its status was.
	require.EqualValues(t, 3, schedule(t, object, h).ApplyTo(clusterv1beta1.PlacementStatus{}).NumberOfSelectedClusters)
}

func TestReasonsOfDecisions(t *testing.T) {
	h := newHub(managed("a", setLabel+"=x"), managed("b"))
	h.sets = []*clusterv1beta2.ManagedClusterSet{labelSet("y", &metav1.LabelSelector{}), exclusiveSet("x")}
	h.bindings = []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "y"), binding("ns", "x")}
	result := schedule(t, placed(t, `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.name == "b"']}}}, {}]`), h)
	decisions := result.Decision.Groups[0].Slices[0].Decisions
	require.Equal(t, "in ManagedClusterSet x, matches spec.predicates[1]", decisions[0].Reason)
	require.Equal(t, "in ManagedClusterSet y, matches spec.predicates[0]", decisions[1].Reason)
}

func TestResponsible(t *testing.T) {
	const disable, take = clusterv1beta1.PlacementDisableAnnotation, placement.TakeAnnotation
	for name, test := range map[string]struct {
		annotations   map[string]string
		deleting      bool
		shared, alone bool
	}{
		"plain":             {nil, false, false, true},
		"disabled":          {map[string]string{disable: "true"}, false, false, false},
		"not disabled":      {map[string]string{disable: "false"}, false, false, true},
		"taken":             {map[string]string{take: "true"}, false, true, true},
		"taken from others": {map[string]string{take: "true", disable: "true"}, false, true, true},
		"not taken":         {map[string]string{take: "yes", disable: "true"}, false, false, false},
		"deleting":          {map[string]string{take: "true"}, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := placed(t, ``)
			object.Annotations = test.annotations
			if test.deleting {
				object.DeletionTimestamp = &metav1.Time{Time: now}
			}
			require.Equal(t, test.shared, placement.Responsible(object, false))
			require.Equal(t, test.alone, placement.Responsible(object, true))
		})
	}
	require.False(t, placement.Responsible(nil, true))
}
