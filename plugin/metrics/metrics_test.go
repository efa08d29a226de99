// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/plugin/metrics"
)

// bench has metrics with a fake clock. Each reading of the clock advances it by a millisecond.
type bench struct {
	*metrics.Metrics
	registry compbase.KubeRegistry
	looks    int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{registry: compbase.NewKubeRegistry()}
	var err error
	b.Metrics, err = metrics.New(b.registry, func() time.Time {
		b.looks++
		return time.UnixMilli(b.looks)
	})
	require.NoError(t, err)
	return b
}

// values returns the values of all time series that are not zero. The value of a histogram is its sum.
func (b *bench) values(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := b.registry.Gather()
	require.NoError(t, err)
	result := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "celset_scheduler_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			if value := metric.GetHistogram().GetSampleSum() + metric.GetCounter().GetValue() + metric.GetGauge().GetValue(); value != 0 {
				result[name] = value
			}
		}
	}
	return result
}

func claimWith(constraints ...resourceapi.DeviceConstraint) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Constraints: constraints}}}
}

func match(name resourceapi.FullyQualifiedName) resourceapi.DeviceConstraint {
	return resourceapi.DeviceConstraint{MatchAttribute: &name}
}

func distinct(name resourceapi.FullyQualifiedName) resourceapi.DeviceConstraint {
	return resourceapi.DeviceConstraint{DistinctAttribute: &name}
}

func TestConstraintAndOutcomeOfAnAllocation(t *testing.T) {
	plain, attribute, constrained := claimWith(), claimWith(match("example.com/numa")), claimWith(match("celset.dev/ring"))
	wrapped := func(err error) error { return fmt.Errorf("filter operation aborted: %w", err) }
	for name, test := range map[string]struct {
		claims []*resourceapi.ResourceClaim
		found  bool
		err    error
		want   string
	}{
		"no claim":                  {nil, true, nil, "none allocated"},
		"no constraint":             {[]*resourceapi.ResourceClaim{plain}, true, nil, "none allocated"},
		"attribute":                 {[]*resourceapi.ResourceClaim{attribute, plain}, true, nil, "attribute allocated"},
		"distinct attribute":        {[]*resourceapi.ResourceClaim{claimWith(distinct("example.com/numa"))}, true, nil, "attribute allocated"},
		"CEL":                       {[]*resourceapi.ResourceClaim{attribute, constrained, plain}, true, nil, "cel allocated"},
		"both in one claim":         {[]*resourceapi.ResourceClaim{claimWith(match("example.com/numa"), match("celset.dev/ring"))}, true, nil, "cel allocated"},
		"CEL, wrong":                {[]*resourceapi.ResourceClaim{claimWith(distinct("celset.dev/ring"))}, false, errors.New("wrong"), "cel error"},
		"no fit, without a reason":  {[]*resourceapi.ResourceClaim{constrained}, false, nil, "cel no_fit"},
		"no fit, with a reason":     {[]*resourceapi.ResourceClaim{constrained}, false, wrapped(structured.ErrFailedAllocationOnNode), "cel no_fit"},
		"budget":                    {[]*resourceapi.ResourceClaim{constrained}, false, wrapped(&allocator.BudgetError{Unit: allocator.BudgetCost}), "cel budget"},
		"time is over":              {[]*resourceapi.ResourceClaim{constrained}, false, wrapped(context.DeadlineExceeded), "cel timeout"},
		"nobody wants to know it":   {[]*resourceapi.ResourceClaim{constrained}, false, wrapped(context.Canceled), "cel cancelled"},
		"error of an expression":    {[]*resourceapi.ResourceClaim{constrained}, false, wrapped(&cel.Error{Reason: cel.ReasonRuntime}), "cel error"},
		"error before there was it": {[]*resourceapi.ResourceClaim{plain}, false, errors.New("class not found"), "none error"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			end := b.ObserveAllocation(test.claims, false)
			b.looks += 249
			end(test.found, allocator.Stats{}, test.err)
			values := b.values(t)
			delete(values, "budget_exhaustions_total cost")
			require.Empty(t, cmp.Diff(map[string]float64{"allocation_duration_seconds " + test.want: .25}, values))
		})
	}
}

func TestStatsOfAnAllocation(t *testing.T) {
	stats := allocator.Stats{
		Steps: 2, Evaluations: 3, SetsAccepted: 1, TableEvaluations: 5, TableBuilds: 1, Cost: 700, CacheHits: 12, AnswersKnown: 1, Cuts: 13,
		PreferencesBestFound: 1,
	}
	b := newBench(t)
	b.ObserveAllocation([]*resourceapi.ResourceClaim{claimWith(match("celset.dev/ring"))}, false)(true, stats, nil)
	want := map[string]float64{
		"allocation_duration_seconds cel allocated": .001,
		"allocation_steps cel allocated":            2,
		"allocation_cost allocated":                 700,
		"constraint_evaluations_total set":          3,
		"constraint_evaluations_total part":         5,
		"cache_requests_total answers hit":          1,
		"cache_requests_total verdicts hit":         11,
		"cache_requests_total verdicts miss":        3,
		"search_cuts_total":                         13,
		"preference_searches_total best_found":      1,
	}
	require.Empty(t, cmp.Diff(want, b.values(t)))

	// The work of a search counts for every result of the search.
	b.ObserveAllocation([]*resourceapi.ResourceClaim{claimWith()}, false)(false, stats, &allocator.BudgetError{Unit: allocator.BudgetSteps})
	b.ObserveAllocation([]*resourceapi.ResourceClaim{claimWith()}, false)(false, allocator.Stats{}, &allocator.BudgetError{Unit: allocator.BudgetCost})
	for _, name := range []string{
		"constraint_evaluations_total set", "constraint_evaluations_total part", "cache_requests_total answers hit", "cache_requests_total verdicts hit", "cache_requests_total verdicts miss", "search_cuts_total",
		"preference_searches_total best_found",
	} {
		want[name] *= 2
	}
	want["allocation_duration_seconds none budget"] = .002
	// Evaluations of preferences have a cost even if the claims have no constraint.
	want["allocation_cost budget"] = 700
	want["allocation_steps none budget"] = 2
	want["budget_exhaustions_total steps"] = 1
	want["budget_exhaustions_total cost"] = 1
	require.Empty(t, cmp.Diff(want, b.values(t)))
}

func TestExpressions(t *testing.T) {
	b := newBench(t)
	b.ObserveEvaluation("devices", 7, nil)
	b.ObserveEvaluation("devices", 11, fmt.Errorf("claim: %w", &cel.Error{Reason: cel.ReasonRuntime}))
	b.ObserveEvaluation("devices", 0, &cel.Error{Reason: cel.ReasonInterrupted})
	b.ObserveEvaluation("devices", 0, errors.New("of no known kind"))
	b.ObserveCompilation("devices", false, nil)
	b.ObserveCompilation("devices", true, nil)
	b.ObserveCompilation("devices", true, &cel.Error{Reason: cel.ReasonInvalid})
	b.ObserveCompilation("devices", false, &cel.Error{Reason: cel.ReasonInvalid})
	b.ObserveRefusal(metrics.RefusalConstraint)
	b.ObserveRefusal(metrics.RefusalGate)
	b.ObserveRefusal(metrics.RefusalGate)
	require.Empty(t, cmp.Diff(map[string]float64{
		"cel_expression_constraint_cost":                       18,
		"constraint_evaluation_failures_total Runtime":         1,
		"constraint_evaluation_failures_total Interrupted":     1,
		"constraint_evaluation_failures_total Unknown":         1,
		"constraint_compilations_total compiled":               1,
		"cache_requests_total expressions hit":                 2,
		"cache_requests_total expressions miss":                2,
		"constraint_compilations_total refused":                1,
		"refused_scheduling_attempts_total invalid_constraint": 1,
		"refused_scheduling_attempts_total gate_disabled":      2,
	}, b.values(t)))
}

func TestNodeSets(t *testing.T) {
	b := newBench(t)
	for found, failure := range map[bool]error{true: nil, false: context.DeadlineExceeded} {
		b.ObserveNodeSet()(found, failure)
	}
	b.ObserveNodeSet()(false, nil)
	require.Equal(t, 3, b.families(t)["celset_scheduler_node_set_duration_seconds"], "allocated, timeout and no_fit")
}

func TestClaims(t *testing.T) {
	b := newBench(t)
	require.NotContains(t, b.families(t), "celset_scheduler_claims", "nobody knows how many there are")

	allocated := claimWith(match("celset.dev/ring"))
	allocated.Status.Allocation = &resourceapi.AllocationResult{}
	all := []*resourceapi.ResourceClaim{claimWith(), claimWith(match("a/b")), claimWith(match("celset.dev/ring")), allocated, allocated}
	var failure error
	b.WatchClaims(func() ([]*resourceapi.ResourceClaim, error) { return all, failure })
	require.Empty(t, cmp.Diff(map[string]float64{
		"claims none pending": 1, "claims attribute pending": 1, "claims cel pending": 1, "claims cel allocated": 2,
	}, b.values(t)))
	require.Equal(t, 6, b.families(t)["celset_scheduler_claims"], "zero is shown as well")

	all = all[:1]
	require.Empty(t, cmp.Diff(map[string]float64{"claims none pending": 1}, b.values(t)))
	failure = errors.New("not now")
	require.NotContains(t, b.families(t), "celset_scheduler_claims")
	b.WatchClaims(func() ([]*resourceapi.ResourceClaim, error) { return nil, nil })
	require.Equal(t, 6, b.families(t)["celset_scheduler_claims"])
}

// families maps the name of each metric to its number of time series.
func (b *bench) families(t *testing.T) map[string]int {
	t.Helper()
	families, err := b.registry.Gather()
	require.NoError(t, err)
	result := map[string]int{}
	for _, family := range families {
		result[family.GetName()] = len(family.GetMetric())
	}
	return result
}

func TestPreemption(t *testing.T) {
	b := newBench(t)
	require.NotContains(t, b.families(t), "celset_scheduler_device_holds")
	b.WatchHolds(func() int { return 7 })
	b.ObservePreemption(metrics.PreemptionNominated)
	b.ObserveVictims(3)
	b.ObserveHoldEnd("bound", 3)
	b.ObserveHoldEnd("timeout", 2)
	b.ObserveHoldEnd("broken", 4)
	require.Empty(t, cmp.Diff(map[string]float64{
		"device_holds": 7, "device_preemption_attempts_total nominated": 1, "device_preemption_victims_total": 3,
		"device_holds_ended_total bound": 1, "device_holds_ended_total timeout": 1, "device_holds_ended_total broken": 1, "device_preemption_victims_without_bind_total": 2,
	}, b.values(t)))
}

func TestAttributes(t *testing.T) {
	b := newBench(t)
	require.NotContains(t, b.families(t), "celset_scheduler_device_attributes", "there is no object")
	b.ShowAttributes(metrics.Attributes{Accepted: 1, Rejected: 2, Set: 3, UnmatchedRows: 4, FailedExpressions: 5, Conflicts: 6})
	b.ObserveEnrichment()()
	require.Empty(t, cmp.Diff(map[string]float64{
		"device_attributes": 3, "device_attributes_objects accepted": 1, "device_attributes_objects rejected": 2,
		"device_attributes_problems unmatched_row": 4, "device_attributes_problems failed_expression": 5, "device_attributes_problems conflict": 6,
		"device_attributes_duration_seconds": 0.001,
	}, b.values(t)))
}

func TestPendingWrites(t *testing.T) {
	b := newBench(t)
	b.ObservePendingWrite("stored")
	b.ObservePendingWrite("gone")
	b.ObservePendingWrite("gone")
	require.Empty(t, cmp.Diff(map[string]float64{
		"allocation_writes_in_doubt_total stored": 1, "allocation_writes_in_doubt_total gone": 2,
	}, b.values(t)))
}

// TestBeginning checks that counters are exported before the first event.
func TestBeginning(t *testing.T) {
	require.Empty(t, cmp.Diff(map[string]int{
		"celset_scheduler_allocation_writes_in_doubt_total":     4,
		"celset_scheduler_cel_expression_constraint_cost":       1,
		"celset_scheduler_constraint_evaluations_total":         2,
		"celset_scheduler_constraint_evaluation_failures_total": 6,
		"celset_scheduler_nodes_unfit_by_failure_total":         4,
		"celset_scheduler_constraint_compilations_total":        2,
		"celset_scheduler_search_cuts_total":                    1,
		"celset_scheduler_cache_requests_total":                 6,
		"celset_scheduler_preference_searches_total":            2,
		"celset_scheduler_device_preemption_attempts_total":     4,
		"celset_scheduler_device_preemption_victims_total":      1,
		"celset_scheduler_device_holds_ended_total":             8,

		"celset_scheduler_device_preemption_victims_without_bind_total": 1,

		"celset_scheduler_budget_exhaustions_total":           2,
		"celset_scheduler_refused_scheduling_attempts_total":  6,
		"celset_scheduler_resource_slices_out_of_range_total": 1,
		"celset_scheduler_device_attributes_duration_seconds": 1,
		"celset_scheduler_device_sets_counts_total":           4,
		"celset_scheduler_device_sets_publications_total":     2,
	}, newBench(t).families(t)))
}

// TestFragmentation checks that only the last report is exported.
func TestFragmentation(t *testing.T) {
	b := newBench(t)
	require.NotContains(t, b.families(t), "celset_scheduler_device_sets", "nothing was counted")
	shape := fragmentation.Shape{
		Class: "gpu", Constraint: "ring", Devices: 4, Asked: 3,
		Now: fragmentation.Count{Sets: 1}, Packed: fragmentation.Count{Sets: 2, AtLeast: true}, Idle: fragmentation.Count{Sets: 5},
	}
	found := &metrics.Fragmentation{
		Report: &fragmentation.Report{Shapes: []fragmentation.Shape{shape, {Class: "gone", Constraint: "ring", Devices: 8, Asked: 9}, shape}},
		At:     time.UnixMilli(1500), Took: 250 * time.Millisecond,
	}
	b.ShowFragmentation(found)
	b.ObserveCount(metrics.CountComplete)
	want := map[string]float64{
		"device_sets gpu ring 4 now": 1, "device_sets gpu ring 4 packed": 2, "device_sets gpu ring 4 idle": 5,
		"device_sets_incomplete gpu ring 4 packed": 1, "device_set_claims gpu ring 4": 3, "device_set_claims gone ring 8": 9,
		"device_sets_last_count_timestamp_seconds": 1.5, "device_sets_last_count_duration_seconds": .25, "device_sets_counts_total complete": 1,
	}
	require.Empty(t, cmp.Diff(want, b.values(t)))
	require.Equal(t, 6, b.families(t)["celset_scheduler_device_sets"], "zero is shown as well")

	b.ShowFragmentation(&metrics.Fragmentation{Report: &fragmentation.Report{Shapes: []fragmentation.Shape{shape}, NotPacked: "too many"}, At: found.At, Took: found.Took})
	delete(want, "device_set_claims gone ring 8")
	delete(want, "device_sets gpu ring 4 packed")
	delete(want, "device_sets_incomplete gpu ring 4 packed")
	require.Empty(t, cmp.Diff(want, b.values(t)))
	require.Equal(t, 2, b.families(t)["celset_scheduler_device_sets"])

	b.ShowFragmentation(nil)
	require.Empty(t, cmp.Diff(map[string]float64{"device_sets_counts_total complete": 1}, b.values(t)))
}

// TestConventions checks that names, units and help texts follow the conventions of Prometheus.
func TestConventions(t *testing.T) {
	b := newBench(t)
	b.ObserveAllocation([]*resourceapi.ResourceClaim{claimWith(match("celset.dev/ring"))}, false)(true, allocator.Stats{}, nil)
	b.WatchClaims(func() ([]*resourceapi.ResourceClaim, error) { return nil, nil })
	b.WatchHolds(func() int { return 0 })
	b.ShowFragmentation(&metrics.Fragmentation{Report: &fragmentation.Report{Shapes: []fragmentation.Shape{{Class: "gpu", Constraint: "ring", Devices: 4}}}})
	families, err := b.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		require.True(t, strings.HasPrefix(family.GetName(), "celset_scheduler_"), family.GetName())
		require.True(t, strings.HasPrefix(family.GetHelp(), "[ALPHA] "), family.GetHelp())
	}
	response := httptest.NewRecorder()
	compbase.HandlerFor(b.registry, compbase.HandlerOpts{}).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	problems, err := testutil.NewPromLinter(response.Body).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestNewRefuses(t *testing.T) {
	b := newBench(t)
	_, err := metrics.New(b.registry, time.Now)
	require.ErrorContains(t, err, "register metric celset_scheduler_allocation_duration_seconds: duplicate")
	for room, want := range []string{"celset_scheduler_claims", "celset_scheduler_device_holds", "celset_scheduler_device_sets"} {
		_, err = metrics.New(&nearlyFull{compbase.NewKubeRegistry(), room}, time.Now)
		require.ErrorContains(t, err, "register metric "+want+": no room")
	}
}

// nearlyFull is a registry that accepts only room collectors.
type nearlyFull struct {
	compbase.KubeRegistry
	room int
}

func (r *nearlyFull) CustomRegister(compbase.StableCollector) error {
	if r.room == 0 {
		return errors.New("no room")
	}
	r.room--
	return nil
}

func TestDefaultIsOne(t *testing.T) {
	first, err := metrics.Default()
	require.NoError(t, err)
	second, err := metrics.Default()
	require.NoError(t, err)
	require.Same(t, first, second)
}
