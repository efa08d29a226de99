// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/preference"
)

// greatest prefers devices with large indices.
const greatest = "devices.map(d, d.attributes['mla.example.com'].index).sum()"

func preferenceOf(t testing.TB, name, expression string) resourceapi.DeviceConfiguration {
	t.Helper()
	raw, err := json.Marshal(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.PreferenceKind, "name": name, "type": "Expression", "expression": expression,
	})
	require.NoError(t, err)
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}}}
}

// prefer adds a preference to a claim.
func prefer(t testing.TB, c *resourceapi.ResourceClaim, name, expression string) *resourceapi.ResourceClaim {
	t.Helper()
	c.Spec.Devices.Config = append(c.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: preferenceOf(t, name, expression)})
	return c
}

// classPreferring returns a class for an extended resource with a preference.
func classPreferring(t testing.TB, expression string) *resourceapi.DeviceClass {
	t.Helper()
	c := class()
	c.Spec.ExtendedResourceName = ptr.To(string(extendedResource))
	c.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: preferenceOf(t, "p", expression)}}
	return c
}

// tried returns the cycle state after a pod was tried on the node.
func tried(ctx context.Context, t *testing.T, pl *DynamicResourcesCEL, p *v1.Pod) fwk.CycleState {
	t.Helper()
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, p, nil)
	require.True(t, status.IsSuccess(), status)
	status = pl.Filter(ctx, state, p, node(nodeName))
	require.True(t, status.IsSuccess(), status)
	return state
}

// TestPreferencesNeedOurAllocator checks that a preference alone, without a constraint, selects celset's allocator. If the gate
// is off, the plugin ignores preferences and refuses no pod.
func TestPreferencesNeedOurAllocator(t *testing.T) {
	for name, test := range map[string]struct {
		pod     *v1.Pod
		objects []runtime.Object
	}{
		"of the claim":      {pod(), []runtime.Object{class(), prefer(t, claim(1), "p", greatest)}},
		"of the class":      {pod(), []runtime.Object{classPreferring(t, greatest), claim(1)}},
		"extended resource": {plugintest.ExtendedPod(extendedResource, 1), []runtime.Object{classPreferring(t, greatest)}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, pl := start(t, true, append(test.objects, slice(0, 2, 3))...)
			state := tried(ctx, t, pl, test.pod)
			require.IsType(t, &cycle.MeasuredAllocator{}, usedAllocator(t, pl, state))
			values := cycle.NodeValuesIn(state).Of(nodeName)
			require.Equal(t, allocator.PreferenceBest, values.Outcome)
			require.Len(t, values.Preferences, 1)
			require.EqualValues(t, 3, values.Preferences[0].Value)

			ctx, pl = start(t, false, append(test.objects, slice(0, 2, 3))...)
			state = tried(ctx, t, pl, test.pod)
			require.IsType(t, &cycle.LimitedAllocator{}, usedAllocator(t, pl, state))
			require.Nil(t, cycle.NodeValuesIn(state))
			pl.mode = configv1alpha1.AllocatorAll
			state = tried(ctx, t, pl, test.pod)
			require.IsType(t, &cycle.MeasuredAllocator{}, usedAllocator(t, pl, state))
			require.Empty(t, cycle.NodeValuesIn(state).Of(nodeName).Preferences)
		})
	}
}

// TestPreferenceWithoutTheGate checks that even a preference with mistakes is ignored if the gate is off. The plugin still
// refuses pods with a constraint.
func TestPreferenceWithoutTheGate(t *testing.T) {
	for _, mode := range []configv1alpha1.AllocatorMode{configv1alpha1.AllocatorConstrained, configv1alpha1.AllocatorAll, configv1alpha1.AllocatorUpstream} {
		ctx, pl := start(t, false, class(), slice(0), prefer(t, claim(1), "p", "devices +"))
		pl.mode = mode
		tried(ctx, t, pl, pod())
	}
	ctx, pl := start(t, false, class(), slice(0, 1), prefer(t, constrain(t, claim(2), "ring2", ring2), "p", greatest))
	_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	require.Equal(t, gateMessage(claim(2)), status.Message())
}

// TestUpstreamIgnoresPreferences checks that upstream's allocator ignores preferences, as it ignores constraints.
func TestUpstreamIgnoresPreferences(t *testing.T) {
	a := startAdmissionWith(t, upstreamOnly(), true, class(), slice(0, 1), prefer(t, claim(1), "p", "devices +"))
	state := tried(a.ctx, t, a.DynamicResourcesCEL, pod())
	require.IsType(t, &cycle.LimitedAllocator{}, usedAllocator(t, a.DynamicResourcesCEL, state))
}

func TestMistakesInPreferencesAreReportedByPreFilter(t *testing.T) {
	for name, test := range map[string]struct {
		pod     *v1.Pod
		objects []runtime.Object
		want    string
	}{
		"of the claim":      {pod(), []runtime.Object{class(), prefer(t, claim(1), "p", "true")}, "claim default/claim, preference p (ResourceClaim default/claim spec.devices.config[0]): ERROR: <input>:1:1: the expression must return int, but returns bool"},
		"beside constraint": {pod(), []runtime.Object{class(), prefer(t, constrain(t, claim(2), "ring2", ring2), "p", "devices +")}, "preference p (ResourceClaim default/claim spec.devices.config[1]): ERROR: "},
		"of the class":      {pod(), []runtime.Object{classPreferring(t, ""), claim(1)}, "DeviceClass mla.example.com: spec.config[0].opaque.parameters.expression: Required value"},
		"extended resource": {plugintest.ExtendedPod(extendedResource, 1), []runtime.Object{classPreferring(t, "devices +")}, "claim default/<extended-resources>, preference p (DeviceClass mla.example.com spec.config[0]): ERROR: "},
	} {
		t.Run(name, func(t *testing.T) {
			registry := compbase.NewKubeRegistry()
			ctx, pl := startMeasured(t, registry, true, append(test.objects, slice(0, 1))...)
			state := framework.NewCycleState()
			_, status := pl.PreFilter(ctx, state, test.pod, nil)
			require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
			require.Contains(t, status.Message(), test.want)
			require.EqualValues(t, 1, plugintest.MetricValues(t, registry)["refused_scheduling_attempts_total invalid_constraint"])
			require.Nil(t, cycle.NodeValuesIn(state))
		})
	}
}

// rawArguments returns the plugin's arguments as the framework passes them: undecoded.
func rawArguments(text string) runtime.Object { return &runtime.Unknown{Raw: []byte(text)} }

// TestDefaultPreference checks that the argument defaultPreference selects celset's allocator for claims without a preference,
// if the gate is on.
func TestDefaultPreference(t *testing.T) {
	for _, p := range []*v1.Pod{pod(), plugintest.ExtendedPod(extendedResource, 1)} {
		for enabled, want := range map[bool]structured.Allocator{true: &cycle.MeasuredAllocator{}, false: &cycle.LimitedAllocator{}} {
			objects := class()
			objects.Spec.ExtendedResourceName = ptr.To(string(extendedResource))
			a := startAdmissionWith(t, rawArguments(`{"defaultPreference": "KeepWhole"}`), enabled, objects, slice(0, 1), claim(1))
			state := tried(a.ctx, t, a.DynamicResourcesCEL, p)
			require.IsType(t, want, usedAllocator(t, a.DynamicResourcesCEL, state))
		}
	}
}

// TestDefaultPreferenceWithoutTheGateIsLogged sets defaultPreference with the gate off. The scheduler starts, so only the log
// shows this mistake to an administrator.
func TestDefaultPreferenceWithoutTheGateIsLogged(t *testing.T) {
	ctx, h := newHandle(t, class())
	ctx, log := plugintest.WithLog(ctx)
	_, err := newPlugin(ctx, rawArguments(`{"defaultPreference": "KeepWhole"}`), h, features(), false, newMetrics(t), newShared())
	require.NoError(t, err)
	plugintest.RequireLogged(t, log, "The plugin's argument defaultPreference has no effect while the feature gate is disabled")
}

// TestPreferencesAreCounted checks the searches with a preference in the metrics, by outcome. The claims have no constraint.
func TestPreferencesAreCounted(t *testing.T) {
	// Propagation finds no bound for this expression, so all sets must be tried.
	const unreadable = "devices.slice(0, 5).map(d, d.attributes['mla.example.com'].index).sum()"
	for args, want := range map[string]string{
		"{}":                    "best",
		"budget: {steps: 1000}": "best_found",
		"budget: {cost: 10000}": "best_found",
	} {
		a := startAdmissionWith(t, rawArguments(args), true, class(), slice(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), prefer(t, claim(5), "p", unreadable))
		tried(a.ctx, t, a.DynamicResourcesCEL, pod())
		values := plugintest.MetricValues(t, a.registry)
		require.EqualValues(t, 1, values["preference_searches_total "+want], args)
		require.EqualValues(t, 1, values["allocation_duration_seconds none allocated"])
		require.EqualValues(t, 1, values["allocation_cost allocated"])
		require.NotContains(t, values, "budget_exhaustions_total steps")
	}
}

// newPreference returns the scoring plugin of a scheduler.
func newPreference(ctx context.Context, t *testing.T, h fwk.Handle) *preference.Scorer {
	t.Helper()
	pl, err := preference.NewFactory(utilfeature.DefaultFeatureGate)(ctx, nil, h)
	require.NoError(t, err)
	require.Equal(t, preference.Name, pl.Name())
	return pl.(*preference.Scorer)
}

func TestPreferenceTakesNoArguments(t *testing.T) {
	ctx, h := newHandle(t)
	_, err := preference.NewFactory(utilfeature.DefaultFeatureGate)(ctx, rawArguments("{}"), h)
	require.EqualError(t, err, "DynamicResourcesCELPreference: the plugin takes no arguments: remove its entry from pluginConfig")
}

// onNodes returns one slice for each node, with the devices that have the given indices.
func onNodes(indices map[string][]int64) (objects []runtime.Object) {
	for name, all := range indices {
		s := slice(all...)
		s.Name, s.Spec.Pool.Name, s.Spec.NodeName = name, name, &name
		objects = append(objects, s)
	}
	return objects
}

// scored returns the scores of nodes after Filter has run for all of them. Nodes that don't fit have no score.
func scored(ctx context.Context, t *testing.T, pl *DynamicResourcesCEL, scorer *preference.Scorer, state fwk.CycleState, nodes []fwk.NodeInfo) (scores map[string]int64) {
	t.Helper()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	fits := make([]bool, len(nodes))
	var running sync.WaitGroup
	for i, info := range nodes {
		running.Go(func() { fits[i] = pl.Filter(ctx, state, pod(), info).IsSuccess() })
	}
	running.Wait()
	var passed []fwk.NodeInfo
	for i, info := range nodes {
		if fits[i] {
			passed = append(passed, info)
		}
	}
	status = scorer.PreScore(ctx, state, pod(), passed)
	if status.IsSkip() {
		return nil
	}
	require.True(t, status.IsSuccess(), status)
	scores = map[string]int64{}
	for _, info := range passed {
		scores[info.Node().Name], status = scorer.Score(ctx, state, pod(), info)
		require.True(t, status.IsSuccess(), status)
	}
	require.Nil(t, scorer.ScoreExtensions())
	return scores
}

// TestNodesAreScored checks that each node is scored by the best set that Filter found there. Scoring runs no second search.
func TestNodesAreScored(t *testing.T) {
	indices := map[string][]int64{"low": {0, 1, 2}, "high": {6, 7}, "same": {0, 6, 7}, "middle": {1, 3, 4}, "small": {9}}
	infos := named("low", "high", "same", "middle", "small", "empty")
	for name, test := range map[string]struct {
		claim *resourceapi.ResourceClaim
		want  map[string]int64
	}{
		"preference":                 {prefer(t, claim(2), "p", greatest), map[string]int64{"low": 0, "middle": 50, "high": 100, "same": 100}},
		"less is better":             {prefer(t, claim(2), "p", "-"+greatest), map[string]int64{"low": 100, "middle": 66, "same": 33, "high": 0}},
		"with a constraint":          {prefer(t, constrain(t, claim(2), "ring2", ring2), "p", "-"+greatest), map[string]int64{"low": 100, "middle": 50, "high": 0, "same": 0}},
		"of constant value":          {prefer(t, claim(2), "p", "1"), nil},
		"no preference":              {constrain(t, claim(2), "ring2", ring2), nil},
		"nothing that ours looks at": {claim(2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			registry := compbase.NewKubeRegistry()
			ctx, pl := startMeasured(t, registry, true, append(onNodes(indices), class(), test.claim)...)
			scorer := newPreference(ctx, t, &handle{Manager: pl.resolver.Manager})
			require.Empty(t, cmp.Diff(test.want, scored(ctx, t, pl, scorer, framework.NewCycleState(), infos)))
			searches := plugintest.MetricValues(t, registry)["allocation_duration_seconds none allocated"]
			require.LessOrEqual(t, searches, 4.0)
		})
	}
}

// TestPreFilterForgets checks that PreFilter on a reused cycle state clears the preference values of the previous pod.
func TestPreFilterForgets(t *testing.T) {
	ctx, pl := start(t, true, append(onNodes(map[string][]int64{"low": {0, 1}, "high": {6, 7}}), class(), prefer(t, claim(2), "p", greatest))...)
	scorer, state := newPreference(ctx, t, &handle{Manager: pl.resolver.Manager}), framework.NewCycleState()
	require.NotNil(t, scored(ctx, t, pl, scorer, state, named("low", "high")))
	require.Nil(t, scored(ctx, t, pl, scorer, state, named("high")))
	pl.mode = configv1alpha1.AllocatorUpstream
	require.Nil(t, scored(ctx, t, pl, scorer, state, named("low", "high")))
	require.Nil(t, cycle.NodeValuesIn(state))
}

// TestClonesShareWhatWasFound checks that clones of a cycle state share the values found by Filter. Upstream's plugin allocates
// the last result for a node, even if a clone of the state recorded it, so the score must belong to that result.
func TestClonesShareWhatWasFound(t *testing.T) {
	ctx, pl := start(t, true, append(onNodes(map[string][]int64{"low": {0, 1}, "high": {6, 7}}), class(), prefer(t, claim(2), "p", greatest))...)
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	for _, info := range named("low", "high") {
		require.True(t, pl.Filter(ctx, state.Clone(), pod(), info).IsSuccess())
	}
	require.Equal(t, map[string]int64{"low": 0, "high": 100}, cycle.NodeValuesIn(state).Scores(named("low", "high")))
}

// TestPodsWithDevicesAreNotSigned checks that pods with devices have no scheduling signature. Each allocation changes the
// nodes' scores for the next pod, so the scheduler must not reuse scores.
func TestPodsWithDevicesAreNotSigned(t *testing.T) {
	ctx, h := newHandle(t, classPreferring(t, greatest))
	h.Start(ctx, t, classPreferring(t, greatest))
	scorer := newPreference(ctx, t, h)
	for _, p := range []*v1.Pod{pod(), plugintest.ExtendedPod(extendedResource, 1)} {
		_, status := scorer.SignPod(ctx, p)
		require.Equal(t, fwk.Unschedulable, status.Code())
	}
	for _, p := range []*v1.Pod{{}, plugintest.ExtendedPod("example.com/of-a-device-plugin", 1)} {
		fragments, status := scorer.SignPod(ctx, p)
		require.True(t, status.IsSuccess(), status)
		require.Empty(t, fragments)
	}
}

// named returns nodes with the given names.
func named(names ...string) []fwk.NodeInfo {
	infos := make([]fwk.NodeInfo, 0, len(names))
	for _, name := range names {
		infos = append(infos, node(name))
	}
	return infos
}
