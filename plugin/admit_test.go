// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/allocator"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// queue is a fake scheduling queue. The guard reads its pods to see whether other pods wait.
type queue []*v1.Pod

func (q queue) PodsInActiveQ() []*v1.Pod { return q }

// admission is a plugin under test, with a guard that runs on a fake clock.
type admission struct {
	*DynamicResourcesCEL
	ctx      context.Context
	clock    *clocktesting.FakePassiveClock
	guard    *guard.Guard
	handle   *handle
	registry compbase.KubeRegistry
}

func startAdmission(t *testing.T, objects ...runtime.Object) *admission {
	t.Helper()
	return startAdmissionWith(t, nil, true, objects...)
}

// startAdmissionWith is startAdmission with arguments for the plugin, and the gate on or off.
func startAdmissionWith(t *testing.T, args runtime.Object, enabled bool, objects ...runtime.Object) *admission {
	t.Helper()
	a := &admission{
		clock:    clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)),
		registry: compbase.NewKubeRegistry(),
	}
	a.guard = guard.New(a.clock)
	measured, err := metrics.New(a.registry, time.Now)
	require.NoError(t, err)
	a.ctx, a.handle = newHandle(t, objects...)
	a.DynamicResourcesCEL, err = newPlugin(a.ctx, args, a.handle, features(), enabled, measured, newProfiles(a.guard, utilfeature.DefaultFeatureGate))
	require.NoError(t, err)
	a.handle.Start(a.ctx, t, objects...)
	return a
}

func (a *admission) pass(d time.Duration) { a.clock.SetTime(a.clock.Now().Add(d)) }

func (a *admission) activated() []string { return a.handle.Activated() }

// refuse requires that PreFilter refuses the pod.
func (a *admission) refuse(t *testing.T) string {
	t.Helper()
	_, status := a.PreFilter(a.ctx, framework.NewCycleState(), pod(), nil)
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	return status.Message()
}

// admit requires that PreFilter admits the pod.
func (a *admission) admit(t *testing.T) fwk.CycleState {
	t.Helper()
	state := framework.NewCycleState()
	_, status := a.PreFilter(a.ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	return state
}

func (a *admission) requireRefusals(t *testing.T, reason string, want int) {
	t.Helper()
	families, err := a.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "celset_scheduler_refused_scheduling_attempts_total" && metric.GetLabel()[0].GetValue() == reason {
				require.EqualValues(t, want, metric.GetCounter().GetValue())
				return
			}
		}
	}
	t.Errorf("no refusals because of %s are counted", reason)
}

// TestClaimOverBudgetBacksOff checks a claim whose search exceeds the budget in every attempt. PreFilter refuses the pod during
// the back-off. After the back-off the guard activates the pod without any event in the cluster.
func TestClaimOverBudgetBacksOff(t *testing.T) {
	a := startAdmission(t, class(), slice(0, 2, 3), constrain(t, claim(2), "shape", unread))
	a.allocators.Budget = allocator.Budget{Cost: 2, Steps: 1000}
	for i, want := range []string{"12:00:01Z", "12:00:03Z", "12:00:07Z"} {
		state := a.admit(t)
		require.Equal(t, fwk.Error, a.Filter(a.ctx, state, pod(), node(nodeName)).Code())
		message := a.refuse(t)
		require.Contains(t, message, "the next attempt is at 2026-01-02T"+want)
		require.Contains(t, message, "claim default/claim, constraint shape, node node-1: the evaluations together exceed the cost budget of 1 ")
		wait, any := a.guard.Look()
		require.True(t, any)
		require.Len(t, a.activated(), i)
		a.pass(wait)
		a.guard.Look()
		require.Len(t, a.activated(), i+1)
	}
	require.Equal(t, "default/pod", a.activated()[0])
	a.requireRefusals(t, "back_off", 3)

	// With a larger budget the search ends with a result, and the guard resets the claim's count of failures.
	a.allocators.Budget.Cost = 1000
	a.requireNoFit(t)
	a.allocators.Budget.Cost = 4
	require.Equal(t, fwk.Error, a.Filter(a.ctx, a.admit(t), pod(), node(nodeName)).Code())
	require.Contains(t, a.refuse(t), " 1 times in a row")
}

// requireNoFit requires that the search ends with the result that no devices fit.
func (a *admission) requireNoFit(t *testing.T) {
	t.Helper()
	state := a.admit(t)
	require.Equal(t, fwk.UnschedulableAndUnresolvable, a.Filter(a.ctx, state, pod(), node(nodeName)).Code())
}

func TestReservedClaimDoesNotBackOff(t *testing.T) {
	a := startAdmission(t, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	state := a.admit(t)
	cycle.ClaimsIn(state).Attempt.Failed(context.DeadlineExceeded)
	require.True(t, a.Filter(a.ctx, state, pod(), node(nodeName)).IsSuccess(), "one node was too much, another has devices")
	require.True(t, a.Reserve(a.ctx, state, pod(), nodeName).IsSuccess())
	a.Unreserve(a.ctx, state, pod(), nodeName)
	a.admit(t)
}

// TestAttemptBudget checks that the searches of one attempt together can exceed the attempt's step budget, although each search
// stays within its own limit of half that budget.
func TestAttemptBudget(t *testing.T) {
	a := startAdmission(t, class(), slice(0, 2, 3), constrain(t, claim(2), "shape", unread))
	a.allocators.Budget = allocator.Budget{Cost: 1_000_000, Steps: 20}
	state := a.admit(t)
	status := a.Filter(a.ctx, state, pod(), node(nodeName))
	require.True(t, status.IsSuccess() || status.Code() == fwk.UnschedulableAndUnresolvable, "what was begun is finished: %v", status)
	used := usedAllocator(t, a.DynamicResourcesCEL, state).(*cycle.MeasuredAllocator)
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		other := constrain(t, claim(2), "shape", unread+strings.Repeat(" || false", i+1))
		other.UID = types.UID(fmt.Sprint("other-", i))
		_, err = used.Allocate(a.ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, []*resourceapi.ResourceClaim{other})
		if errors.Is(err, structured.ErrFailedAllocationOnNode) {
			err = nil
		}
	}
	require.ErrorContains(t, err, "the searches on all nodes together exceed the step budget of 20 steps")
	require.ErrorContains(t, err, "or raise budget.steps in the scheduler plugin's DynamicResourcesCELArgs")
}

// TestAttemptIsOver checks that Filter searches no more nodes with either allocator when the attempt's time is over and other
// pods wait. Nodes that Filter accepted before stay usable, so the attempt itself does not fail.
func TestAttemptIsOver(t *testing.T) {
	for name, c := range map[string]*resourceapi.ResourceClaim{
		"with CEL constraint":    constrain(t, claim(2), "ring2", ring2),
		"without CEL constraint": claim(2),
	} {
		t.Run(name, func(t *testing.T) {
			a := startAdmission(t, class(), slice(0, 2, 3), c)
			a.guard.Watch(queue{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "waits"}}})
			state := a.admit(t)
			a.pass(configv1alpha1.DefaultAttemptTimeout - time.Millisecond)
			a.guard.Look()
			require.True(t, a.Filter(a.ctx, state, pod(), node(nodeName)).IsSuccess())
			a.pass(time.Millisecond)
			a.guard.Look()
			status := a.Filter(a.ctx, state, pod(), node("node-2"))
			require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
			require.Contains(t, status.Message(), "not checked, because the attempt to schedule the pod took longer than 400ms while other pods wait")
			require.Contains(t, a.refuse(t), "the next attempt is at 2026-01-02T12:00:0")
		})
	}
}

// endless is an allocator that returns only when its context is done.
type endless struct{ structured.Allocator }

func (endless) Allocate(ctx context.Context, _ *v1.Node, _ []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestUpstreamIsInterrupted checks that the time limit of an attempt interrupts upstream's allocator, also in a profile that
// uses upstream's allocator for all pods.
func TestUpstreamIsInterrupted(t *testing.T) {
	endlessly := func(t *testing.T, args runtime.Object, c *resourceapi.ResourceClaim) (*admission, fwk.CycleState) {
		a := startAdmissionWith(t, args, true, class(), slice(0, 2, 3), c)
		state := a.admit(t)
		usedAllocator(t, a.DynamicResourcesCEL, state).(*cycle.LimitedAllocator).Allocator = endless{}
		return a, state
	}
	for _, test := range []struct {
		args  runtime.Object
		claim *resourceapi.ResourceClaim
	}{{nil, claim(2)}, {upstreamOnly(), claim(2)}, {upstreamOnly(), constrain(t, claim(2), "ring2", ring2)}} {
		a, state := endlessly(t, test.args, test.claim)
		ended := make(chan *fwk.Status)
		go func() { ended <- a.Filter(a.ctx, state, pod(), node(nodeName)) }()
		a.pass(time.Second)
		a.guard.Look()
		status := <-ended
		require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
		require.Contains(t, status.Message(), "not checked")
		require.Contains(t, a.refuse(t), " 1 times in a row")
		a.requireRefusals(t, "back_off", 1)
	}

	// If the framework cancels the search, Filter returns upstream's own message.
	a, state := endlessly(t, nil, claim(2))
	ctx, cancel := context.WithCancel(a.ctx)
	cancel()
	require.Contains(t, a.Filter(ctx, state, pod(), node(nodeName)).Message(), "asked by caller to stop allocating devices")
}

// TestPoolOfOneNodeStopsNoOther checks that an incomplete or invalid pool excludes only the node of the pool. The claims use
// allocationMode All, with either allocator.
func TestPoolOfOneNodeStopsNoOther(t *testing.T) {
	all := func() *resourceapi.ResourceClaim {
		c := claim(0)
		c.Spec.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
		return c
	}
	incomplete, invalid := slice(0, 2), slice(0, 0)
	incomplete.Spec.Pool.ResourceSliceCount = 2
	for name, test := range map[string]struct {
		args  runtime.Object
		claim *resourceapi.ResourceClaim
	}{
		"without a constraint":    {nil, all()},
		"upstream's for all":      {upstreamOnly(), all()},
		"ours, with a constraint": {nil, constrain(t, all(), "ring2", ring2)},
		"ours, which serves all":  {&runtime.Unknown{Raw: []byte(`{"allocator":"All"}`)}, all()},
	} {
		for of, wants := range map[*resourceapi.ResourceSlice]string{incomplete: "being updated", invalid: "invalid"} {
			t.Run(name+", "+wants, func(t *testing.T) {
				a := startAdmissionWith(t, test.args, true, class(), of, test.claim)
				status := a.Filter(a.ctx, a.admit(t), pod(), node(nodeName))
				require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code(), "%v", status)
				require.Equal(t, "claim default/claim, request mla: asks for all devices, but resource pool mla.example.com/node-1 is currently "+wants, status.Message())
			})
		}
	}
}

// TestOtherPodsAreNotGuarded checks that the guard ignores pods without claims to allocate.
func TestOtherPodsAreNotGuarded(t *testing.T) {
	allocated := constrain(t, claim(2), "ring2", ring2)
	allocated.Status.Allocation = &resourceapi.AllocationResult{}
	a := startAdmission(t, class(), slice(0, 2, 3), allocated)
	require.Nil(t, cycle.ClaimsIn(a.admit(t)).Attempt)
	_, status := a.PreFilter(a.ctx, framework.NewCycleState(), &v1.Pod{}, nil)
	require.True(t, status.IsSkip())
}

func TestSelectorsAreJudged(t *testing.T) {
	long := "device.driver == '" + strings.Repeat("x", resourceapi.CELSelectorExpressionMaxLength) + "'"
	selectors := []resourceapi.DeviceSelector{
		{CEL: &resourceapi.CELDeviceSelector{Expression: "true"}}, {}, {CEL: &resourceapi.CELDeviceSelector{Expression: long}},
	}
	exactly := claim(2)
	exactly.Spec.Devices.Requests[0].Exactly.Selectors = selectors
	alternative := claim(2)
	alternative.Spec.Devices.Requests[0] = resourceapi.DeviceRequest{Name: "mla", FirstAvailable: []resourceapi.DeviceSubRequest{
		{Name: "large", DeviceClassName: className, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 2, Selectors: selectors},
	}}
	for name, c := range map[string]*resourceapi.ResourceClaim{"mla": exactly, "mla/large": alternative} {
		t.Run(name, func(t *testing.T) {
			a := startAdmission(t, class(), slice(0, 2, 3), c)
			require.Equal(t, "claim default/claim, request "+name+": selector #2: the expression is longer than 10240 bytes", a.refuse(t))
			a.requireRefusals(t, "invalid_selector", 1)
		})
	}
}

// upstreamOnly returns the arguments of a profile that uses upstream's allocator for all pods.
func upstreamOnly() runtime.Object { return &runtime.Unknown{Raw: []byte(`{"allocator":"Upstream"}`)} }

// TestUpstreamIgnoresConstraints checks that a profile with upstream's allocator never evaluates a CEL constraint, valid or
// not. As in kube-scheduler, the constraint is a matchAttribute for an attribute that no device has, so the claim fits nowhere.
func TestUpstreamIgnoresConstraints(t *testing.T) {
	for name, c := range map[string]*resourceapi.ResourceClaim{
		"can be satisfied": constrain(t, claim(2), "ring2", ring2),
		"does not compile": constrain(t, claim(2), "wrong", "devices.size("),
		"not defined":      reference(claim(2), "ring2"),
	} {
		for _, enabled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				a := startAdmissionWith(t, upstreamOnly(), enabled, class(), slice(0, 2, 3), c)
				require.Nil(t, a.allocators.Cache)
				state := a.admit(t)
				require.IsType(t, &cycle.LimitedAllocator{}, usedAllocator(t, a.DynamicResourcesCEL, state))
				status := a.Filter(a.ctx, state, pod(), node(nodeName))
				require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
				require.Equal(t, "cannot allocate all claims", status.Message())
				require.Empty(t, fail(a.ctx, t, a.DynamicResourcesCEL, nodeName).Message(), "there is nothing to explain")
				require.Empty(t, cmp.Diff(map[string]float64{"claims cel pending": 1}, plugintest.MetricValues(t, a.registry)))
			})
		}
	}
}

// configured returns the guard of a scheduler whose profiles have these arguments, in this order.
func configured(t *testing.T, clock *clocktesting.FakePassiveClock, args ...string) (*guard.Guard, error) {
	t.Helper()
	shared := newProfiles(guard.New(clock), utilfeature.DefaultFeatureGate)
	return shared.guard, shared.configureAll(t, args...)
}

// configureAll creates the plugins of profiles with these arguments, in this order.
func (p *profiles) configureAll(t *testing.T, args ...string) error {
	t.Helper()
	ctx, h := newHandle(t)
	for i, raw := range args {
		h := &profileHandle{h, "profile-" + string(rune('a'+i))}
		if _, err := newPlugin(ctx, &runtime.Unknown{Raw: []byte(raw)}, h, features(), true, newMetrics(t), p); err != nil {
			return err
		}
	}
	return nil
}

type profileHandle struct {
	*handle
	name string
}

func (h *profileHandle) ProfileName() string { return h.name }

// TestLimitsOfTheWholeScheduler checks that limits of any profile, in any order, apply to all profiles.
func TestLimitsOfTheWholeScheduler(t *testing.T) {
	for name, test := range map[string]struct {
		profiles []string
		want     string
	}{
		"none has any":   {[]string{`{}`, `{"allocator":"Upstream"}`}, "more than 20 percent"},
		"the first has":  {[]string{`{"share":{"percent":30}}`, `{}`}, "more than 30 percent"},
		"the last has":   {[]string{`{"allocator":"Upstream"}`, `{"share":{"percent":30}}`}, "more than 30 percent"},
		"both have them": {[]string{`{"share":{"percent":30}}`, `{"share":{"percent":30,"burst":"150ms"}}`}, "more than 30 percent"},
		"each has one":   {[]string{`{"backOff":{"initial":"7s"}}`, `{"share":{"percent":30}}`}, "more than 30 percent"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			g, err := configured(t, clock, test.profiles...)
			require.NoError(t, err)
			g.CycleBegan("default")
			clock.SetTime(clock.Now().Add(time.Minute))
			g.CycleEnded()
			g.Watch(queue{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "waits"}}})
			g.CycleBegan("default")
			_, refusal := g.Admit(guard.Request{Pod: pod(), Activate: func(*v1.Pod) {}})
			require.NotNil(t, refusal)
			require.Contains(t, refusal.Message, test.want)
		})
	}
}

// TestFragmentationInterval checks that sets are not counted if no profile uses celset's allocator.
func TestFragmentationInterval(t *testing.T) {
	for name, test := range map[string]struct {
		profiles []string
		want     time.Duration
	}{
		"none has it":            {[]string{`{"allocator":"Upstream"}`, `{}`}, 5 * time.Minute},
		"one has it":             {[]string{`{"allocator":"Upstream","fragmentationInterval":"1h"}`, `{}`}, time.Hour},
		"never":                  {[]string{`{}`, `{"fragmentationInterval":"0s"}`}, 0},
		"all leave it to others": {[]string{`{"allocator":"Upstream","fragmentationInterval":"1h"}`, `{"allocator":"Upstream"}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newShared()
			require.NoError(t, shared.configureAll(t, test.profiles...))
			require.Equal(t, test.want, shared.FragmentationInterval())
		})
	}
}

func TestProfilesMustAgree(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	_, err := configured(t, clock, `{"share":{"percent":30}}`, `{}`, `{"share":{"burst":"1s"}}`)
	require.EqualError(t, err, `DynamicResourcesCEL: profile profile-c has share {"percent":20,"burst":"1s"}, `+
		`but profile profile-a has {"percent":30,"burst":"150ms"}: the argument applies to the whole scheduler, so set it in one profile, or to the same value in all profiles`)
	_, err = configured(t, clock, `{"backOff":{"initial":"2s"}}`, `{"allocator":"Upstream","backOff":{}}`)
	require.ErrorContains(t, err, `profile profile-b has backOff {"initial":"1s","max":"5m0s"}, but profile profile-a has {"initial":"2s","max":"5m0s"}: `)
	_, err = configured(t, clock, `{"fragmentationInterval":"2s"}`, `{"fragmentationInterval":"1h"}`)
	require.ErrorContains(t, err, `profile profile-b has fragmentationInterval "1h0m0s", but profile profile-a has "2s": `)
}
