// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/preparation"
)

// preparingBench is a plugin under test that compiles claims in the background, as celset-scheduler does.
type preparingBench struct {
	*DynamicResourcesCEL
	ctx      context.Context
	handle   *handle
	registry compbase.KubeRegistry
	guard    *guard.Guard
	// clock is the guard's clock.
	clock *clocktesting.FakePassiveClock
}

func (b *preparingBench) ahead() preparation.Ahead { return b.prepared.(preparation.Ahead) }

func startPreparing(t *testing.T, args runtime.Object, objects ...runtime.Object) *preparingBench {
	t.Helper()
	return startPreparingSlowly(t, args, nil, objects...)
}

// startPreparingSlowly is startPreparing with a slow compilation: reading the claim "slow" blocks until release is closed.
func startPreparingSlowly(t *testing.T, args runtime.Object, release chan struct{}, objects ...runtime.Object) *preparingBench {
	t.Helper()
	b := &preparingBench{registry: compbase.NewKubeRegistry(), clock: clocktesting.NewFakePassiveClock(time.Now())}
	measured, err := metrics.New(b.registry, time.Now)
	require.NoError(t, err)
	b.ctx, b.handle = newHandle(t, objects...)
	if release != nil {
		b.handle.Manager = slowManager{b.handle.Manager, release}
	}
	shared := newShared()
	b.guard = guard.New(b.clock)
	shared.inBackground, shared.guard = true, b.guard
	b.DynamicResourcesCEL, err = newPlugin(b.ctx, args, b.handle, features(), true, measured, shared)
	require.NoError(t, err)
	b.handle.Start(b.ctx, t, objects...)
	return b
}

func (b *preparingBench) compilations(t *testing.T) float64 {
	t.Helper()
	values := plugintest.MetricValues(t, b.registry)
	return values["constraint_compilations_total compiled"] + values["constraint_compilations_total refused"]
}

// awaitActivated waits until pods were activated the given number of times.
func (b *preparingBench) awaitActivated(t *testing.T, times int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(b.handle.Activated()) >= times }, waitFor, tick)
}

func selecting(c *resourceapi.ResourceClaim, expression string) *resourceapi.ResourceClaim {
	c.Spec.Devices.Requests[0].Exactly.Selectors = append(c.Spec.Devices.Requests[0].Exactly.Selectors,
		resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}})
	return c
}

// TestPodsAreGatedUntilTheirClaimsArePrepared checks that all expressions are compiled before the scheduling cycle. PostFilter,
// which explains the failure, compiles nothing either.
func TestPodsAreGatedUntilTheirClaimsArePrepared(t *testing.T) {
	const unmet = "devices.size() == 2 && devices.all(d, d.attributes['mla.example.com'].index > 2) && true"
	for name, args := range map[string]runtime.Object{"ours": nil, "upstream's allocator": upstreamOnly()} {
		t.Run(name, func(t *testing.T) {
			b := startPreparing(t, args, class(), slice(0, 2, 3),
				selecting(constrain(t, claim(2), "unmet", unmet), "device.attributes['mla.example.com'].index >= 0"))
			require.Equal(t, "the expressions of claim default/claim are being compiled: the scheduler tries the pod after that",
				b.PreEnqueue(b.ctx, pod()).Message())
			b.awaitActivated(t, 1)
			require.True(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())

			before := b.compilations(t)
			state := framework.NewCycleState()
			_, status := b.PreFilter(b.ctx, state, pod(), nil)
			require.True(t, status.IsSuccess(), "%v", status)
			require.Equal(t, fwk.UnschedulableAndUnresolvable, b.Filter(b.ctx, state, pod(), node(nodeName)).Code())
			said := fail(b.ctx, t, b.DynamicResourcesCEL, nodeName).Message()
			if args == nil {
				require.Contains(t, said, "no set satisfies constraint unmet, line 1, column 24: devices.all(", "each conjunct was prepared")
			}
			require.Equal(t, before, b.compilations(t), "nothing is compiled within the cycle")
		})
	}
}

// TestPreFilterWaitsForClaims checks a pod that is in the queue before its claims are compiled. PreFilter refuses the pod with
// a reason, and the pod is activated after the compilation.
func TestPreFilterWaitsForClaims(t *testing.T) {
	b := startPreparing(t, nil, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	_, status := b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	require.Equal(t, "the expressions of claim default/claim are being compiled: the scheduler tries the pod after that", status.Message())
	require.EqualValues(t, 1, plugintest.MetricValues(t, b.registry)["refused_scheduling_attempts_total preparing"])
	b.awaitActivated(t, 1)
	state := framework.NewCycleState()
	_, status = b.PreFilter(b.ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), "%v", status)
	require.True(t, b.Filter(b.ctx, state, pod(), node(nodeName)).IsSuccess())
}

// TestPodsAreToldWhatTheyWaitFor checks that PreEnqueue lets a pod through once after a long wait. PreFilter refuses it with
// the reason, which reaches the pod's status.
func TestPodsAreToldWhatTheyWaitFor(t *testing.T) {
	release, slow := make(chan struct{}), claim(1)
	slow.Name, slow.UID = "slow", "slow"
	b := startPreparingSlowly(t, nil, release, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	b.prepared.Await(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "slow"}}, []*resourceapi.ResourceClaim{slow})
	require.False(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
	b.clock.SetTime(b.clock.Now().Add(5 * time.Second))
	b.guard.Look()
	b.awaitActivated(t, 1)
	require.True(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
	_, status := b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
	require.Equal(t, "the expressions of claim default/claim are being compiled: the scheduler tries the pod after that", status.Message())
	close(release)
	require.Eventually(t, func() bool {
		_, status := b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
		return status.IsSuccess()
	}, waitFor, tick)
}

// TestMistakesArePrepared checks that a mistake gives the same message with and without compilation in the background.
func TestMistakesArePrepared(t *testing.T) {
	for want, c := range map[string]*resourceapi.ResourceClaim{
		"Syntax error": constrain(t, claim(2), "wrong", "devices ="),
		"claim default/claim, request mla: selector #0: CEL compile error":                          selecting(claim(2), "device ="),
		"claim default/claim, request mla: selector #0: CEL can't compile it, write it another way": selecting(claim(2), "[?dyn(1)].size() > 0"),
		"claim default/claim, request mla: selector #1: the selector may take more than 100000 CEL cost units or 2097152 bytes on one device": selecting(selecting(claim(2), "true"),
			"lists.range(900000).distinct().size() > 0"),
	} {
		b := startPreparing(t, nil, class(), slice(0, 2, 3), c)
		require.False(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
		b.awaitActivated(t, 1)
		require.True(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
		_, status := b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
		require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
		require.Contains(t, status.Message(), want)
	}
}

// TestClaimsArePreparedAgain checks that claims are compiled again after a change of their classes.
func TestClaimsArePreparedAgain(t *testing.T) {
	b := startPreparing(t, nil, class(), slice(0, 2, 3), reference(claim(2), "ring2"))
	require.False(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
	b.awaitActivated(t, 1)
	_, status := b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
	require.Contains(t, status.Message(), "ring2", "nothing defines it")

	changed := class()
	changed.ResourceVersion = "2"
	changed.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: constrain(t, claim(2), "ring2", ring2).Spec.Devices.Config[0].DeviceConfiguration}}
	_, err := b.handle.Client.ResourceV1().DeviceClasses().Update(b.ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !b.PreEnqueue(b.ctx, pod()).IsSuccess() }, waitFor, tick)
	b.awaitActivated(t, 2)
	_, status = b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
	require.True(t, status.IsSuccess(), "%v", status)
}

// TestNamespacesArePreparedInTurns has one namespace with claims that take seconds to compile, and another namespace with a
// claim that takes a millisecond. The fast claim must not wait for all slow ones.
func TestNamespacesArePreparedInTurns(t *testing.T) {
	const many = 40
	slow := strings.Repeat("||1+1+1+1+1+1+1+1+1+1==1", 20)
	objects := []runtime.Object{class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2)}
	var pods []*v1.Pod
	for i := range many {
		c := constrain(t, claim(2), "slow", fmt.Sprintf("%d == 1%s", i, slow))
		c.Namespace, c.Name, c.UID = "many", fmt.Sprint("claim-", i), types.UID(fmt.Sprint("many-", i))
		objects = append(objects, c)
		p := pod()
		p.Namespace, p.Name, p.UID = "many", fmt.Sprint("pod-", i), types.UID(fmt.Sprint("pod-", i))
		p.Spec.ResourceClaims[0].ResourceClaimName = &c.Name
		pods = append(pods, p)
	}
	b := startPreparing(t, nil, objects...)
	for _, p := range pods {
		require.False(t, b.PreEnqueue(b.ctx, p).IsSuccess())
	}
	require.False(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
	b.awaitActivated(t, many+1)
	require.Less(t, slices.Index(b.handle.Activated(), "default/pod"), many/2)
	require.Contains(t, b.handle.Activated(), "default/pod")
}

// TestDevicesOfOtherDriversWakeNobody checks that freed devices of other drivers do not queue a waiting pod.
func TestDevicesOfOtherDriversWakeNobody(t *testing.T) {
	freed := func(driver string) *resourceapi.ResourceClaim {
		c := claim(1)
		c.Name, c.UID = "freed", "freed"
		c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "mla", Driver: driver, Pool: "pool", Device: "device"}},
		}}
		return c
	}
	ofOne := class()
	ofOne.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}
	for name, test := range map[string]struct {
		class  *resourceapi.DeviceClass
		driver string
		want   fwk.QueueingHint
	}{
		"of the driver":     {ofOne, driver, fwk.Queue},
		"of another driver": {ofOne, "other.example.com", fwk.QueueSkip},
		"of any driver":     {class(), "other.example.com", fwk.Queue},
	} {
		t.Run(name, func(t *testing.T) {
			b := startPreparing(t, nil, test.class, slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
			events, err := b.EventsToRegister(b.ctx)
			require.NoError(t, err)
			at := slices.IndexFunc(events, func(e fwk.ClusterEventWithHint) bool { return e.Event.Resource == fwk.ResourceClaim })
			before, after := freed(test.driver), freed(test.driver)
			after.Status.Allocation = nil
			hint := func() fwk.QueueingHint {
				hint, err := events[at].QueueingHintFn(klog.FromContext(b.ctx), pod(), before, after)
				require.NoError(t, err)
				return hint
			}
			require.Equal(t, fwk.Queue, hint(), "what the claim says is not known yet")
			require.False(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
			b.awaitActivated(t, 1)
			require.Equal(t, test.want, hint())
		})
	}
}

// TestPreparedNow compiles claims in the foreground: a starting scheduler needs the claims of nominated pods at once.
func TestPreparedNow(t *testing.T) {
	b := startPreparing(t, nil, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	claims := b.resolver.Resolve(pod()).Unallocated
	require.NoError(t, prepareNow(b.ctx, b.ahead(), claims))
	require.True(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	other := selecting(claims[0].DeepCopy(), "true")
	other.UID = "other"
	require.ErrorIs(t, prepareNow(ended, b.ahead(), []*resourceapi.ResourceClaim{other}), context.Canceled)
}

// TestPodsOfClaimsThatBackOffAreGated checks that PreEnqueue gates a new pod whose claim is in back-off, with a message that
// has the reason.
func TestPodsOfClaimsThatBackOffAreGated(t *testing.T) {
	b := startPreparing(t, rawArguments("budget: {cost: 1}"), class(), slice(0, 2, 3), constrain(t, claim(2), "shape", unread))
	require.NoError(t, prepareNow(b.ctx, b.ahead(), b.resolver.Resolve(pod()).Unallocated))
	state := framework.NewCycleState()
	_, status := b.PreFilter(b.ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.Equal(t, fwk.Error, b.Filter(b.ctx, state, pod(), node(nodeName)).Code())
	_, status = b.PreFilter(b.ctx, framework.NewCycleState(), pod(), nil)
	require.Contains(t, status.Message(), "scheduling attempts took too much time 1 times in a row: the next attempt is at ")
	require.Equal(t, "the pod waits in the scheduling queue: its claims are in back-off, or other pods of the namespace go first",
		b.PreEnqueue(b.ctx, pod()).Message())
}

// TestClaimsOfATemplateArePreparedOnce checks that PreEnqueue lets a pod through if its claim equals a compiled claim. A
// mistake is reported with the name of each claim.
func TestClaimsOfATemplateArePreparedOnce(t *testing.T) {
	another := func(name string, c *resourceapi.ResourceClaim) (*v1.Pod, *resourceapi.ResourceClaim) {
		c = c.DeepCopy()
		c.Namespace, c.Name, c.UID = "other", name, types.UID(name)
		p := pod()
		p.Namespace, p.Name, p.UID = "other", name, types.UID("pod of "+name)
		p.Spec.ResourceClaims[0].ResourceClaimName = &c.Name
		return p, c
	}
	first := constrain(t, claim(2), "ring2", ring2)
	same, sameClaim := another("same", first)
	wrong, wrongClaim := another("wrong", constrain(t, claim(2), "ring2", "devices +"))
	wrongToo, wrongClaimToo := another("wrong-too", wrongClaim)
	b := startPreparing(t, nil, class(), slice(0, 2, 3), first, sameClaim, wrongClaim, wrongClaimToo)
	require.False(t, b.PreEnqueue(b.ctx, pod()).IsSuccess())
	b.awaitActivated(t, 1)
	require.True(t, b.PreEnqueue(b.ctx, same).IsSuccess())
	_, status := b.PreFilter(b.ctx, framework.NewCycleState(), same, nil)
	require.True(t, status.IsSuccess(), "%v", status)

	for i, p := range []*v1.Pod{wrong, wrongToo} {
		require.False(t, b.PreEnqueue(b.ctx, p).IsSuccess())
		b.awaitActivated(t, 2+i)
		_, status := b.PreFilter(b.ctx, framework.NewCycleState(), p, nil)
		require.Contains(t, status.Message(), "claim other/"+p.Name+", constraint ring2")
	}
}

// TestPodsForExtendedResourcesWaitInLine checks that PreEnqueue gates pods that request extended resources once eight pods of
// the namespace are queued. Pods without devices, and pods whose devices are allocated, never wait.
func TestPodsForExtendedResourcesWaitInLine(t *testing.T) {
	b := startPreparing(t, nil, classByDefault(ring2), slice(0, 2, 3))
	b.guard.Watch(queue{})
	gated := 0
	for i := range 20 {
		p := plugintest.ExtendedPod(extendedResource, 2)
		p.Name, p.UID = fmt.Sprint("extended-", i), types.UID(fmt.Sprint("extended-", i))
		if !b.PreEnqueue(b.ctx, p).IsSuccess() {
			gated++
		}
		plain := plugintest.ExtendedPod("example.com/other", 2)
		plain.Name, plain.UID = fmt.Sprint("plain-", i), types.UID(fmt.Sprint("plain-", i))
		require.True(t, b.PreEnqueue(b.ctx, plain).IsSuccess(), "no class stands for the resource")
		bound := p.DeepCopy()
		bound.UID += "-bound"
		bound.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
		require.True(t, b.PreEnqueue(b.ctx, bound).IsSuccess(), "there are devices for the pod")
	}
	require.Equal(t, 12, gated, "eight are queued at a time")
}

// prepareNow compiles claims in the foreground.
func prepareNow(ctx context.Context, ahead preparation.Ahead, claims []*resourceapi.ResourceClaim) error {
	_, missing := ahead.Find(claims)
	for _, claim := range missing {
		if _, err := ahead.Keep(fairness.WithTenant(ctx, claim.Namespace), claim); err != nil {
			return err
		}
	}
	return nil
}

// slowManager is a manager whose claim "slow" can't be read until release is closed.
type slowManager struct {
	fwk.SharedDRAManager
	release chan struct{}
}

func (m slowManager) ResourceClaims() fwk.ResourceClaimTracker {
	return slowClaims{m.SharedDRAManager.ResourceClaims(), m.release}
}

type slowClaims struct {
	fwk.ResourceClaimTracker
	release chan struct{}
}

func (c slowClaims) Get(namespace, name string) (*resourceapi.ResourceClaim, error) {
	if name == "slow" {
		<-c.release
	}
	return c.ResourceClaimTracker.Get(namespace, name)
}
