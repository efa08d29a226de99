// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
)

func index(i int) *int { return &i }

func TestGet(t *testing.T) {
	b := newBench(t)
	b.snapshot.Decisions = placement.NewDecisions(&clusterv1beta1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-decision-1", Labels: map[string]string{clusterv1beta1.PlacementLabel: "p"}},
		Status:     clusterv1beta1.PlacementDecisionStatus{Decisions: []clusterv1beta1.ClusterDecision{{ClusterName: "c"}}},
	})
	stored := b.store(t, "p", `{numberOfClusters: 1, prioritizerPolicy: {configurations: [{weight: 3, scoreCoordinate: {type: BuiltIn, builtIn: Steady}}]}}`)
	stored.Annotations = map[string]string{placement.TakeAnnotation: "true"}
	before := stored.DeepCopy()
	report := b.get(t, "p")

	require.Empty(t, cmp.Diff(before, stored), "the Placement is not modified")
	require.Nil(t, report.Placement.ManagedFields)
	require.Equal(t, stored.Spec, report.Placement.Spec)
	want := &debug.Report{
		Responsible: true,
		Available:   debug.Available{Bound: []string{"global"}, Eligible: []string{"global"}, Clusters: 3},
		Filters: []debug.Filter{
			{Name: "Predicate", Passed: []string{"a", "b", "c"}, Removed: []debug.Removal{}},
			{Name: "TaintToleration", Passed: []string{"a", "c"}, Removed: []debug.Removal{{Cluster: "b", Reason: "has the taint down:NoSelect that is not tolerated"}}, Count: 1},
		},
		Prioritizers: []debug.Prioritizer{
			{Name: "Balance", Weight: 1, Scores: map[string]int64{"a": 100, "c": 100}},
			{Name: "Steady", Weight: 3, Scores: map[string]int64{"a": 0, "c": 100}},
		},
		Candidates: []debug.Candidate{
			{Cluster: "c", Score: 400, Selected: true, ClusterSet: "global"},
			{Cluster: "a", Score: 100, ClusterSet: "global", Reason: "is not among the first 1"},
		},
		Groups: []debug.Group{{Decisions: []debug.Decision{{Name: "p-decision-1", Clusters: []clusterv1beta1.ClusterDecision{
			{ClusterName: "c", Reason: "in ManagedClusterSet global", Score: 400},
		}}}}},
	}
	require.Empty(t, cmp.Diff(want, report, cmpopts.IgnoreFields(debug.Report{}, "Placement", "Status", "Time")))
	require.Equal(t, now, report.Time.UTC())
	require.EqualValues(t, 1, report.Status.NumberOfSelectedClusters)
	require.Equal(t, []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{"p-decision-1"}, ClustersCount: 1}}, report.Status.DecisionGroups)
	satisfied := meta.FindStatusCondition(report.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
	require.Equal(t, "All cluster decisions scheduled", satisfied.Message)
}

// What became of the named clusters, also of those that there was no choice of.
func TestNamedClusters(t *testing.T) {
	b := newBench(t)
	report := b.get(t, "p?cluster=b&cluster=nowhere")
	require.Equal(t, []string{"nowhere"}, report.Available.Missing)
	require.Equal(t, 3, report.Available.Clusters)
	require.Equal(t, []string{"b"}, report.Filters[0].Passed)
	require.Empty(t, report.Filters[1].Passed)
	require.Len(t, report.Filters[1].Removed, 1)
	require.Empty(t, report.Candidates)
	require.Empty(t, report.Prioritizers[0].Scores)
	require.Empty(t, report.Groups[0].Decisions[0].Clusters)

	report = b.get(t, "p?cluster=a")
	require.Equal(t, "a", report.Candidates[0].Cluster)
	require.Empty(t, report.Filters[1].Removed)
	require.Equal(t, 1, report.Filters[1].Count)
	require.Len(t, report.Groups[0].Decisions[0].Clusters, 1)
}

func TestMistakes(t *testing.T) {
	report := newBench(t).try(t, `numberOfClusters: -1, predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.']}}}]`)
	require.True(t, report.Stands)
	require.Empty(t, report.Groups)
	require.Len(t, report.Misconfigurations, 2)
	first := report.Misconfigurations[0]
	require.Equal(t, "Predicate", first.Plugin)
	require.Equal(t, "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]", first.Field)
	require.Contains(t, first.Message, "1:16")
	require.Contains(t, first.Message, "| managedCluster.\n | ...............^")
	require.Equal(t, "spec.numberOfClusters", report.Misconfigurations[1].Field)
	require.True(t, meta.IsStatusConditionTrue(report.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured))
}

func TestFailedEvaluations(t *testing.T) {
	report := newBench(t).try(t, `predicates: [
		{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.name == "c"']}}},
		{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["x"] == "y"']}}}]`)
	require.Equal(t, 2, report.Filters[0].Count)
	require.Contains(t, report.Filters[0].Removed[0].Reason, "no such key: labels")
	require.Equal(t, "c", report.Candidates[0].Cluster)
	require.Equal(t, index(0), report.Candidates[0].Predicate)
	require.Equal(t, 3, report.Evaluated)
	require.NotZero(t, report.Cost)
	require.True(t, meta.IsStatusConditionTrue(report.Status.Conditions, placement.ConditionEvaluationFailed))
}

func TestNothingBound(t *testing.T) {
	b := newBench(t)
	b.snapshot.Bindings = nil
	report := b.try(t, ``)
	require.Equal(t, debug.Available{Bound: []string{}, Eligible: []string{}}, report.Available)
	require.Empty(t, report.Filters)
	require.False(t, report.Stands, "who unbinds all sets is obeyed")
	require.Equal(t, []debug.Group{{Decisions: []debug.Decision{{Name: "new-decision-1", Clusters: []clusterv1beta1.ClusterDecision{}}}}}, report.Groups)
}

// Who wrote the object has no say in what others write, nor in what is remembered.
func TestPostTrustsNobody(t *testing.T) {
	b := newBench(t)
	body := `{"metadata": {"namespace": "ns", "name": "p", "uid": "x", "generation": 1, "managedFields": [{"manager": "me"}]},
		"status": {"numberOfSelectedClusters": 12, "conditions": [{"type": "Mine", "status": "True", "reason": "R", "message": "", "lastTransitionTime": null}]}}`
	report := reportIn(t, b.call(t, http.MethodPost, debug.Path+"/", "author", "application/json", body), http.StatusOK)
	require.Empty(t, report.Placement.Status)
	require.Nil(t, report.Placement.ManagedFields)
	require.EqualValues(t, 2, report.Status.NumberOfSelectedClusters)
	require.Nil(t, meta.FindStatusCondition(report.Status.Conditions, "Mine"))
}

func TestResponsible(t *testing.T) {
	for all, want := range map[bool]bool{false: false, true: true} {
		b := newBench(t, func(o *debug.Options) { o.All = all })
		require.Equal(t, want, b.get(t, "p").Responsible)
	}
}

func TestTolerationsAndTaintsThatAvoid(t *testing.T) {
	b := newBench(t)
	b.snapshot.Clusters[0].Spec.Taints = []clusterv1.Taint{{Key: "slow", Effect: clusterv1.TaintEffectPreferNoSelect}}
	b.snapshot.Clusters[1].Spec.Taints[0].TimeAdded = metav1.NewTime(now.Add(-time.Minute))
	report := b.try(t, `tolerations: [{key: down, operator: Exists, tolerationSeconds: 100}]`)
	require.Equal(t, now.Add(40*time.Second), report.Requeue.UTC())
	require.Equal(t, "slow", report.Candidates[2].Avoided)
}

// However many clusters are removed, for however long reasons, the answer is bounded;
// and every one of them can be asked for.
func TestBounds(t *testing.T) {
	b := newBench(t)
	for i := range 3 * debug.MaxRemoved {
		b.snapshot.Clusters = append(b.snapshot.Clusters, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%06d", i)}})
	}
	long := fmt.Sprintf(`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["%s"] == ""']}}}]`, strings.Repeat("ü", 5000))
	response := b.call(t, http.MethodPost, debug.Path+"/", "author", "application/yaml", object("ns", "new", long))
	require.Less(t, response.Body.Len(), 2<<20)
	report := reportIn(t, response, http.StatusOK)
	require.Len(t, report.Filters[0].Removed, debug.MaxRemoved)
	require.Equal(t, 3*debug.MaxRemoved+3, report.Filters[0].Count)
	for _, removal := range report.Filters[0].Removed {
		require.LessOrEqual(t, len(removal.Reason), 1<<10+3)
	}
	last := fmt.Sprintf("many-%06d", 3*debug.MaxRemoved-1)
	report = reportIn(t, b.call(t, http.MethodPost, debug.Path+"/?cluster="+last, "author", "application/yaml", object("ns", "new", long)), http.StatusOK)
	require.Equal(t, last, report.Filters[0].Removed[0].Cluster)
}

func TestWarnings(t *testing.T) {
	b := newBench(t)
	b.snapshot.Scores = expired{}
	report := b.try(t, `prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: r, scoreName: s}}}]}`)
	require.Len(t, report.Warnings, 1)
	require.Equal(t, placement.ReasonScoreExpired, report.Warnings[0].Reason)
	require.Equal(t, "AddOn/r/s", report.Warnings[0].Plugin)
}

// The same request about the same time has the same answer, whenever it is made.
func TestTheTimeIsAParameter(t *testing.T) {
	const spec = `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['now().getDayOfWeek("Europe/Berlin") in [0, 6]']}}}]`
	b := newBench(t)
	at := func(query string) *debug.Report {
		response := b.call(t, http.MethodPost, debug.Path+"/"+query, "author", "application/yaml", object("ns", "new", spec))
		return reportIn(t, response, http.StatusOK)
	}
	require.Equal(t, now, at("").Time.UTC())
	friday, saturday := at("?now=2026-07-31T21:59:59Z"), at("?now=2026-08-01T00:00:00%2B02:00")
	require.Empty(t, friday.Candidates)
	require.Equal(t, time.Date(2026, 7, 31, 21, 59, 59, 0, time.UTC), friday.Time.UTC())
	require.Equal(t, time.Date(2026, 7, 31, 22, 0, 0, 0, time.UTC), friday.Requeue.UTC())
	require.NotEmpty(t, saturday.Candidates)
	require.Equal(t, time.Date(2026, 7, 31, 22, 0, 0, 0, time.UTC), saturday.Time.UTC())
	require.Equal(t, time.Date(2026, 8, 1, 22, 0, 0, 0, time.UTC), saturday.Requeue.UTC())
	require.Equal(t, saturday, at("?now=2026-07-31T22:00:00Z"))

	// Also about a Placement of the hub.
	b.store(t, "timed", spec)
	require.Empty(t, b.get(t, "timed?now=2026-07-31T21:59:59Z").Candidates)
	require.NotEmpty(t, b.get(t, "timed?now=2026-07-31T22:00:00Z&cluster=a").Candidates)
}
