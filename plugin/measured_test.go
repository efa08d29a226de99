// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

// shown are the values that are not zero: those of counters and gauges, and of
// histograms how many there were and, where time plays no role, their sum.
func shown(t *testing.T, registry compbase.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	result := map[string]float64{}
	keep := func(name string, value float64) {
		if value != 0 {
			result[name] = value
		}
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "celset_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			if histogram := metric.GetHistogram(); histogram != nil {
				keep(name, float64(histogram.GetSampleCount()))
				if !strings.Contains(name, "seconds") {
					keep(name+" sum", histogram.GetSampleSum())
				}
				continue
			}
			keep(name, metric.GetCounter().GetValue()+metric.GetGauge().GetValue())
		}
	}
	return result
}

// cycle tries a pod on nodes, as a scheduling cycle does.
func cycle(ctx context.Context, t *testing.T, pl *DynamicResourcesCEL, nodes ...string) {
	t.Helper()
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	for _, name := range nodes {
		pl.Filter(ctx, state, pod(), node(name))
	}
}

// unread can't be told before the set is complete, and is false. It reads no attribute,
// so that one set is as good as any other.
const unread = "devices.slice(0, 1).size() == 2"

func TestMetricsOfSearches(t *testing.T) {
	ring := func(t *testing.T) *resourceapi.ResourceClaim { return constrain(t, claim(2), "ring2", ring2) }
	unreadable := func(t *testing.T) *resourceapi.ResourceClaim { return constrain(t, claim(2), "shape", unread) }
	for name, test := range map[string]struct {
		claim  func(*testing.T) *resourceapi.ResourceClaim
		budget configv1alpha1.Budget
		always bool
		nodes  []string
		want   map[string]float64
	}{
		// Of the three devices the first two are no ring, the last two are.
		"allocated, and no fit": {
			claim: ring, nodes: []string{nodeName, "node-2"},
			want: map[string]float64{
				"allocation_duration_seconds cel allocated": 1,
				"allocation_duration_seconds cel no_fit":    1,
				"allocation_steps cel allocated":            1, "allocation_steps cel allocated sum": 4,
				"allocation_steps cel no_fit": 1, "allocation_steps cel no_fit sum": 1,
				"allocation_cost allocated": 1, "allocation_cost allocated sum": 3 * 4,
				"allocation_cost no_fit":                   1,
				"constraint_evaluations_total part":        3,
				"constraint_compilations_total compiled":   1,
				"constraint_compilations_total remembered": 1,
				"search_cuts_total":                        2,
				"claims cel pending":                       1,
			},
		},
		"known answer": {
			claim: unreadable, nodes: []string{nodeName, nodeName},
			want: map[string]float64{
				"allocation_duration_seconds cel no_fit": 2,
				"allocation_steps cel no_fit":            2, "allocation_steps cel no_fit sum": 2,
				"allocation_cost no_fit": 2, "allocation_cost no_fit sum": 15,
				"cel_expression_constraint_cost": 1, "cel_expression_constraint_cost sum": 15,
				"constraint_evaluations_total set":         1,
				"constraint_compilations_total compiled":   1,
				"constraint_compilations_total remembered": 1,
				"cache_hits_total answers":                 1,
				"claims cel pending":                       1,
			},
		},
		"budget for costs": {
			claim: unreadable, nodes: []string{nodeName}, budget: configv1alpha1.Budget{Cost: ptr.To[int64](1), Steps: ptr.To[int64](1000), AttemptCost: ptr.To[int64](1000), AttemptSteps: ptr.To[int64](1000)},
			want: map[string]float64{
				"allocation_duration_seconds cel budget": 1,
				"allocation_steps cel budget":            1, "allocation_steps cel budget sum": 2,
				"allocation_cost budget": 1, "allocation_cost budget sum": 15,
				"cel_expression_constraint_cost": 1, "cel_expression_constraint_cost sum": 15,
				"constraint_evaluations_total set":            1,
				"constraint_evaluation_failures_total Budget": 1,
				"constraint_compilations_total compiled":      1,
				"constraint_compilations_total remembered":    1,
				"budget_exhaustions_total cost":               1,
				"claims cel pending":                          1,
			},
		},
		"budget for steps": {
			claim: unreadable, nodes: []string{nodeName}, budget: configv1alpha1.Budget{Cost: ptr.To[int64](1000), Steps: ptr.To[int64](1), AttemptCost: ptr.To[int64](1000), AttemptSteps: ptr.To[int64](1000)},
			want: map[string]float64{
				"allocation_duration_seconds cel budget": 1,
				"allocation_steps cel budget":            1, "allocation_steps cel budget sum": 2,
				"allocation_cost budget":                   1,
				"constraint_compilations_total compiled":   1,
				"constraint_compilations_total remembered": 1,
				"budget_exhaustions_total steps":           1,
				"claims cel pending":                       1,
			},
		},
		"error": {
			claim: func(t *testing.T) *resourceapi.ResourceClaim {
				return constrain(t, claim(2), "wrong", "devices.slice(0, 1).all(d, d.attributes['mla.example.com'].missing == 1)")
			},
			nodes: []string{nodeName},
			want: map[string]float64{
				"allocation_duration_seconds cel error": 1,
				"allocation_steps cel error":            1, "allocation_steps cel error sum": 2,
				"allocation_cost error": 1, "allocation_cost error sum": 22,
				"cel_expression_constraint_cost": 1, "cel_expression_constraint_cost sum": 22,
				"constraint_evaluations_total set":             1,
				"constraint_evaluation_failures_total Runtime": 1,
				"constraint_compilations_total compiled":       1,
				"constraint_compilations_total remembered":     1,
				"claims cel pending":                           1,
			},
		},
		"without constraint": {
			claim: func(*testing.T) *resourceapi.ResourceClaim { return claim(2) }, always: true, nodes: []string{nodeName, "node-2"},
			want: map[string]float64{
				"allocation_duration_seconds none allocated": 1,
				"allocation_duration_seconds none no_fit":    1,
				"allocation_steps none allocated":            1, "allocation_steps none allocated sum": 4,
				"allocation_steps none no_fit": 1, "allocation_steps none no_fit sum": 1,
				"claims none pending": 1,
			},
		},
		"attribute": {
			claim: func(*testing.T) *resourceapi.ResourceClaim {
				c := claim(2)
				c.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To[resourceapi.FullyQualifiedName](driver + "/index")}}
				return c
			},
			always: true, nodes: []string{nodeName},
			want: map[string]float64{
				"allocation_duration_seconds attribute no_fit": 1,
				"allocation_steps attribute no_fit":            1, "allocation_steps attribute no_fit sum": 4,
				"claims attribute pending": 1,
			},
		},
		"upstream's allocator": {
			claim: func(*testing.T) *resourceapi.ResourceClaim { return claim(2) }, nodes: []string{nodeName},
			want: map[string]float64{"claims none pending": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := compbase.NewKubeRegistry()
			ctx, pl := startMeasured(t, registry, true, class(), slice(0, 2, 3), test.claim(t))
			if test.always {
				pl.mode = configv1alpha1.AllocatorAll
			}
			if test.budget.Cost != nil {
				pl.budget = &test.budget
			}
			cycle(ctx, t, pl, test.nodes...)
			require.Empty(t, cmp.Diff(test.want, shown(t, registry)))
		})
	}
}

// What one cycle finds out, the next one knows.
func TestMetricsOfLaterCycles(t *testing.T) {
	registry := compbase.NewKubeRegistry()
	ctx, pl := startMeasured(t, registry, true, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	for range 3 {
		cycle(ctx, t, pl, nodeName)
	}
	values := shown(t, registry)
	require.EqualValues(t, 3, values["allocation_duration_seconds cel allocated"])
	require.EqualValues(t, 3, values["constraint_evaluations_total part"], "of each device, once")
	require.EqualValues(t, 2, values["cache_hits_total answers"])
	require.EqualValues(t, 1, values["constraint_compilations_total compiled"])
	require.EqualValues(t, 1, values["constraint_compilations_total remembered"], "to explain it; what the claim says is prepared once")
}

// A scheduler that has found enough nodes stops looking at others.
func TestMetricsOfSearchesThatNobodyWaitsFor(t *testing.T) {
	registry := compbase.NewKubeRegistry()
	ctx, pl := startMeasured(t, registry, true, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	for _, end := range []func() (context.Context, context.CancelFunc){
		func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) },
		func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 0) },
	} {
		ended, cancel := end()
		cancel()
		pl.Filter(ended, state, pod(), node(nodeName))
	}
	values := shown(t, registry)
	require.EqualValues(t, 1, values["allocation_duration_seconds cel cancelled"])
	require.EqualValues(t, 1, values["allocation_duration_seconds cel timeout"])
}

func TestMetricsOfRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		enabled    bool
		expression string
		want       map[string]float64
	}{
		"gate": {false, ring2, map[string]float64{
			"refused_scheduling_attempts_total gate_disabled": 1, "claims cel pending": 1,
		}},
		"constraint": {true, "devices +", map[string]float64{
			"refused_scheduling_attempts_total invalid_constraint": 1, "constraint_compilations_total refused": 1, "constraint_compilations_total remembered": 1, "claims cel pending": 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := compbase.NewKubeRegistry()
			ctx, pl := startMeasured(t, registry, test.enabled, class(), slice(0, 1), constrain(t, claim(2), "c", test.expression))
			_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
			require.False(t, status.IsSuccess())
			require.Empty(t, cmp.Diff(test.want, shown(t, registry)))
		})
	}
}

// profile is a handle of another profile of the same scheduler.
type profile struct {
	*handle
	name string
}

func (p *profile) ProfileName() string { return p.name }

// All profiles of a scheduler show their metrics on its /metrics.
func TestFactoryUsesTheRegistryOfTheProcess(t *testing.T) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	require.NoError(t, AddFeatureGates(gates))
	factory := NewFactory(gates)
	objects := []runtime.Object{claim(2)}
	ctx, h := newHandle(t, objects...)
	for _, name := range []string{"first", "second"} {
		_, err := factory(ctx, nil, &profile{h, name})
		require.NoError(t, err)
	}
	h.start(ctx, t, objects...)
	values := shown(t, legacyregistry.DefaultGatherer)
	require.EqualValues(t, 1, values["claims none pending"])
}
