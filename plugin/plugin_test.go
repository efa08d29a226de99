// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

const (
	waitFor = 2 * time.Minute
	tick    = time.Millisecond

	ring2 = "devices.map(d, d.attributes['mla.example.com'].index).max() - " +
		"devices.map(d, d.attributes['mla.example.com'].index).min() == 1"
)

func typeOf(data fwk.StateData) reflect.Type { return reflect.TypeOf(data) }

func ktestingLogger(ctx context.Context) klog.Logger { return klog.FromContext(ctx) }

// usedAllocator returns what PreFilter left in upstream's state.
func usedAllocator(t *testing.T, pl *DynamicResourcesCEL, state fwk.CycleState) structured.Allocator {
	t.Helper()
	data, err := state.Read(dynamicresources.Name)
	require.NoError(t, err)
	field, err := pl.exchange.allocator(data)
	require.NoError(t, err)
	return *field
}

func TestPodWithoutCELConstraintRunsUpstream(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2, 3), claim(2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.NotNil(t, usedAllocator(t, pl, state))
	_, ours := usedAllocator(t, pl, state).(*measuredAllocator)
	require.False(t, ours)
}

func TestPodWithCELConstraintRunsOurs(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.IsType(t, &measuredAllocator{}, usedAllocator(t, pl, state))

	require.True(t, pl.Filter(ctx, state, pod(), node(nodeName)).IsSuccess())
	status = pl.Filter(ctx, state, pod(), node("node-2"))
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	require.Equal(t, "request mla: 0 of 2 devices", status.Message())

	require.True(t, pl.Reserve(ctx, state, pod(), nodeName).IsSuccess())
	pending := pl.claims.ResourceClaims().GetPendingAllocation("claim")
	require.NotNil(t, pending)
	var devices []string
	for _, result := range pending.Devices.Results {
		devices = append(devices, result.Device)
	}
	require.Equal(t, []string{"mla-2", "mla-3"}, devices, "0 and 2 are not contiguous")
	pl.Unreserve(ctx, state, pod(), nodeName)
	require.Nil(t, pl.claims.ResourceClaims().GetPendingAllocation("claim"))
}

func node(name string) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return info
}

func TestUnsatisfiableConstraintIsExplained(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2, 4), constrain(t, claim(2), "ring2", ring2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	status = pl.Filter(ctx, state, pod(), node(nodeName))
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	require.Equal(t, "constraint ring2: no set of 2 free devices satisfies it", status.Message())
}

// A search that uses up its budget aborts the scheduling of this pod: an error is
// tried again after a while, whatever happens in the cluster, and other nodes are not
// searched. That the search on this node had no answer is not taken for "does not
// fit".
func TestBudgetIsAnErrorOfThePod(t *testing.T) {
	for name, test := range map[string]struct {
		budget configv1alpha1.Budget
		want   string
	}{
		"cost": {
			configv1alpha1.Budget{Cost: ptr.To[int64](1), Steps: ptr.To[int64](1000), AttemptCost: ptr.To[int64](1000), AttemptSteps: ptr.To[int64](1000)},
			"claim default/claim, constraint shape, node node-1: the evaluations together exceed the cost budget of 1 CEL cost units, " +
				"with 3 of 3 sets of devices left undecided: narrow the candidates with selectors or matchAttribute, write a cheaper expression, " +
				"or raise budget.cost in the scheduler plugin's DynamicResourcesCELArgs",
		},
		"steps": {
			configv1alpha1.Budget{Cost: ptr.To[int64](1000), Steps: ptr.To[int64](1), AttemptCost: ptr.To[int64](1000), AttemptSteps: ptr.To[int64](1000)},
			"claim default/claim, constraint shape, node node-1: the search exceeds the step budget of 1 steps, " +
				"with 3 of 3 sets of devices left undecided: narrow the candidates with selectors or matchAttribute, " +
				"split the expression into simple conditions joined by &&, or raise budget.steps in the scheduler plugin's DynamicResourcesCELArgs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Nothing is known about a set before it is evaluated.
			ctx, pl := start(t, true, class(), slice(0, 2, 3), constrain(t, claim(2), "shape", "devices.slice(0, 1).size() == 2"))
			pl.budget = &test.budget
			state := framework.NewCycleState()
			_, status := pl.PreFilter(ctx, state, pod(), nil)
			require.True(t, status.IsSuccess(), status)
			status = pl.Filter(ctx, state, pod(), node(nodeName))
			require.Equal(t, fwk.Error, status.Code())
			require.EqualError(t, status.AsError(), test.want)
			require.ErrorAs(t, status.AsError(), new(*allocator.BudgetError))
		})
	}
}

func TestMistakesAreReportedByPreFilter(t *testing.T) {
	for name, test := range map[string]struct {
		enabled bool
		claim   *resourceapi.ResourceClaim
		want    []string
	}{
		"gate off": {false, constrain(t, claim(2), "ring2", ring2),
			[]string{"resourceclaim default/claim has a CEL device constraint", "--feature-gates=DRACELDeviceConstraint=true"}},
		"not defined": {true, reference(claim(2), "ring2"),
			[]string{"ResourceClaim default/claim", "celset.dev/ring2", "DeviceClass mla.example.com"}},
		"does not compile": {true, constrain(t, claim(2), "ring2", "devices.size() ==\n nothing"),
			[]string{"claim default/claim, constraint ring2", "<input>:2:2: undeclared reference to 'nothing'", "| .^"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, pl := start(t, test.enabled, class(), slice(0, 1), test.claim)
			_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
			require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
			for _, want := range test.want {
				require.Contains(t, status.Message(), want)
			}
		})
	}
}

func TestAllocatorForAllPods(t *testing.T) {
	ctx, pl := start(t, false, class(), slice(0, 2, 3), claim(2))
	pl.mode = configv1alpha1.AllocatorAll
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.IsType(t, &measuredAllocator{}, usedAllocator(t, pl, state))
	require.True(t, pl.Filter(ctx, state, pod(), node(nodeName)).IsSuccess())
}

func TestAllocatedClaimsAreLeftAlone(t *testing.T) {
	c := constrain(t, claim(2), "ring2", ring2)
	c.Status.Allocation = &resourceapi.AllocationResult{}
	// Even with the gate off: disabling the feature keeps what is allocated.
	ctx, pl := start(t, false, class(), slice(0, 1), c)
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.Nil(t, usedAllocator(t, pl, state))
}

func TestPodWithoutClaimsIsSkipped(t *testing.T) {
	ctx, pl := start(t, true)
	_, status := pl.PreFilter(ctx, framework.NewCycleState(), &v1.Pod{}, nil)
	require.True(t, status.IsSkip())
}

func TestDisabledDynamicResourceAllocation(t *testing.T) {
	off := features()
	off.EnableDynamicResourceAllocation = false
	pl, err := newPlugin(t.Context(), nil, &handle{}, off, true, newMetrics(t), newShared())
	require.NoError(t, err)
	_, status := pl.PreFilter(t.Context(), framework.NewCycleState(), pod(), nil)
	require.True(t, status.IsSkip())
}

func TestArguments(t *testing.T) {
	defaults, err := decodeArgs(nil, features(), utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Equal(t, configv1alpha1.AllocatorConstrained, defaults.Allocator)
	decoded := upstreamArgs(defaults, features())
	require.Equal(t, 10*time.Second, decoded.FilterTimeout.Duration, "upstream's default is for its own name only")
	require.Equal(t, 600*time.Second, decoded.BindingTimeout.Duration)

	given, err := decodeArgs(&runtime.Unknown{Raw: []byte(`{"filterTimeout": "3s", "allocator": "All"}`)}, features(), utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, upstreamArgs(given, features()).FilterTimeout.Duration)
	require.Equal(t, configv1alpha1.AllocatorAll, given.Allocator)

	_, pl := start(t, true)
	require.Equal(t, allocator.DefaultCacheBytes, defaults.CacheSize.Value())
	require.Less(t, uint64(*pl.budget.AttemptCost), allocator.DefaultCostBudget, "others wait for this scheduler")
	require.Less(t, *pl.budget.AttemptSteps, allocator.DefaultStepBudget)

	_, err = decodeArgs(&runtime.Unknown{Raw: []byte(`{"filterTimeuot": "3s"}`)}, features(), utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "filterTimeuot")
	_, err = decodeArgs(&v1.Pod{}, features(), utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "DynamicResourcesCEL: got arguments of type *v1.Pod")
}

func TestFeatureGateIsAlphaAndOff(t *testing.T) {
	gates := featuregate.NewFeatureGate()
	require.NoError(t, AddFeatureGates(gates))
	require.False(t, gates.Enabled(DRACELDeviceConstraint))
	require.NoError(t, gates.Set("DRACELDeviceConstraint=true"))
	require.True(t, gates.Enabled(DRACELDeviceConstraint))
	require.Equal(t, featuregate.Alpha, gates.GetAll()[DRACELDeviceConstraint].PreRelease)
}

func TestName(t *testing.T) {
	require.Equal(t, "DynamicResourcesCEL", (&DynamicResourcesCEL{}).Name())
}

// An argument for what the emulated version lacks is an error only if it is given.
func TestArgumentsOfWhatIsOff(t *testing.T) {
	off := features()
	off.EnableDRASchedulerFilterTimeout, off.EnableDRADeviceBindingConditions = false, false
	defaults, err := decodeArgs(nil, off, utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Error(t, validation.ValidateDynamicResourcesArgs(nil, upstreamArgs(defaults, features()), off))
	require.NoError(t, validation.ValidateDynamicResourcesArgs(nil, upstreamArgs(defaults, off), off))

	_, err = decodeArgs(&runtime.Unknown{Raw: []byte(`{"filterTimeout": "3s", "bindingTimeout": "1m"}`)}, off, utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "args.filterTimeout: Forbidden: needs the feature gate DRASchedulerFilterTimeout, which is off; leave it out, or enable")
	require.ErrorContains(t, err, "args.bindingTimeout: Forbidden: needs the feature gate DRADeviceBindingConditions, which is off; ")

	older := featuregate.NewVersionedFeatureGate(version.MustParse("1.35"))
	require.NoError(t, older.AddVersioned(utilfeature.DefaultMutableFeatureGate.GetAllVersioned()))
	require.Equal(t, "DRADeviceBindingConditions, on by default since Kubernetes 1.36, but this is 1.35", describeGate(older, kubefeatures.DRADeviceBindingConditions))
}
