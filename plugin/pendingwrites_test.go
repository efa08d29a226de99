// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/pendingwrites"
)

// renamed returns the claim or the pod under another name. A renamed pod uses the claim of the same name.
func renamed[T interface {
	SetName(string)
	SetUID(types.UID)
	SetResourceVersion(string)
}](object T, name string) T {
	object.SetName(name)
	object.SetUID(types.UID(name))
	object.SetResourceVersion("1")
	if user, is := any(object).(*v1.Pod); is {
		user.Spec.ResourceClaims[0].ResourceClaimName = &name
	}
	return object
}

// fallible is a plugin whose writes to the API server a test can intercept. Its watch delivers no events of claims.
type fallible struct {
	*DynamicResourcesCEL
	ctx    context.Context
	handle *handle
	client *fake.Clientset
	// write handles the next update of a claim's status. If write is nil, the update is stored.
	write func(store func() error) error
}

func startFallible(t *testing.T, objects ...runtime.Object) *fallible {
	t.Helper()
	ctx, h := newHandle(t, objects...)
	f := &fallible{ctx: ctx, handle: h, client: h.Client.(*fake.Clientset)}
	f.client.PrependWatchReactor("resourceclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, watch.NewFake(), nil
	})
	f.client.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		sent := action.(clienttesting.UpdateAction).GetObject().(*resourceapi.ResourceClaim).DeepCopy()
		if action.GetSubresource() != "status" {
			return true, sent, nil // an update that only adds the finalizer
		}
		sent.ResourceVersion = "2"
		store := func() error {
			return f.client.Tracker().Update(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), sent, sent.Namespace)
		}
		if f.write == nil {
			return true, sent, store()
		}
		return true, sent, f.write(store)
	})
	var err error
	f.DynamicResourcesCEL, err = newPlugin(ctx, nil, h, features(), true, newMetrics(t), newShared())
	require.NoError(t, err)
	h.Start(ctx, t, objects...)
	return f
}

// schedule runs the pod's cycles until one fails. It returns the devices allocated to the pod's claim.
func (f *fallible) schedule(t *testing.T, user *v1.Pod) ([]string, *fwk.Status) {
	t.Helper()
	state := framework.NewCycleState()
	_, status := f.PreFilter(f.ctx, state, user, nil)
	if status.IsSuccess() {
		status = f.Filter(f.ctx, state, user, node(nodeName))
	}
	if !status.IsSuccess() {
		reasons := status.Reasons()
		if text := f.pendingText(user, cycle.ClaimsIn(state)); text != "" {
			reasons = append(reasons, text)
		}
		return nil, fwk.NewStatus(status.Code(), reasons...)
	}
	require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
	var got []string
	for _, entry := range user.Spec.ResourceClaims {
		if pending := f.resolver.Manager.ResourceClaims().GetPendingAllocation(types.UID(*entry.ResourceClaimName)); pending != nil {
			for _, result := range pending.Devices.Results {
				got = append(got, result.Device)
			}
		}
	}
	status = f.PreBind(f.ctx, state, user, nodeName)
	if !status.IsSuccess() {
		f.Unreserve(f.ctx, state, user, nodeName)
	}
	return got, status
}

// TestLostAnswer stores an allocation, but the API server's response is lost and the watch is late. No other claim may get the
// device.
func TestLostAnswer(t *testing.T) {
	for name, constrained := range map[string]bool{"our allocator": true, "upstream's": false} {
		t.Run(name, func(t *testing.T) {
			first, second := renamed(claim(1), "first"), renamed(claim(1), "second")
			if constrained {
				first, second = constrain(t, first, "any", "devices.size() == 1"), constrain(t, second, "any", "devices.size() == 1")
			}
			f := startFallible(t, class(), slice(0), first, second)
			f.write = func(store func() error) error {
				f.write = nil
				require.NoError(t, store())
				return io.ErrUnexpectedEOF
			}
			got, status := f.schedule(t, renamed(pod(), "first"))
			require.Equal(t, []string{deviceName(0)}, got)
			require.ErrorIs(t, status.AsError(), io.ErrUnexpectedEOF)

			got, status = f.schedule(t, renamed(pod(), "second"))
			require.Empty(t, got)
			require.True(t, status.IsRejected(), status)

			// Meanwhile the background read of the API server has confirmed the allocation.
			require.Eventually(t, func() bool { return f.writes.(*pendingwrites.Writes).Ends() == 1 }, waitFor, tick)
			known, err := f.resolver.Manager.ResourceClaims().Get("default", "first")
			require.NoError(t, err)
			require.NotNil(t, known.Status.Allocation)
			got, _ = f.schedule(t, renamed(pod(), "second"))
			require.Empty(t, got)
			_, status = f.schedule(t, renamed(pod(), "first"))
			require.True(t, status.IsSuccess(), status)
		})
	}
}

// TestLostRequest loses a write, so the API server stores nothing. Until the scheduler learns that, it gives the device to no
// other claim. It may give the device to the same claim again.
func TestLostRequest(t *testing.T) {
	f := startFallible(t, class(), slice(0), constrain(t, renamed(claim(1), "first"), "any", "devices.size() == 1"),
		constrain(t, renamed(claim(1), "second"), "any", "devices.size() == 1"))
	lost := func(func() error) error { return apierrors.NewTimeoutError("etcd is slow", 0) }
	f.write = lost
	var log func() ktesting.Log
	f.ctx, log = plugintest.WithLog(f.ctx)
	_, status := f.schedule(t, renamed(pod(), "first"))
	require.Equal(t, fwk.Error, status.Code())
	plugintest.RequireLogged(t, log, "It is unknown whether an allocation was stored; its devices stay reserved until that is known")
	got, status := f.schedule(t, renamed(pod(), "second"))
	require.Empty(t, got)
	require.Contains(t, status.Message(), "1 devices are reserved until the API server or the watch confirms their allocations")
	got, _ = f.schedule(t, renamed(pod(), "first"))
	require.Equal(t, []string{deviceName(0)}, got)

	// If the pod has two claims, its other claim could get the device. So the pod must wait.
	both := renamed(pod(), "first")
	both.Spec.ResourceClaims = append(both.Spec.ResourceClaims, v1.PodResourceClaim{Name: "other", ResourceClaimName: ptr.To("second")})
	got, _ = f.schedule(t, both)
	require.Empty(t, got)

	f.write = nil
	got, status = f.schedule(t, renamed(pod(), "first"))
	require.Equal(t, []string{deviceName(0)}, got)
	require.True(t, status.IsSuccess(), status)
	require.EqualValues(t, 1, f.writes.(*pendingwrites.Writes).Ends())
	require.Contains(t, f.handle.Activated(), "default/second")
	got, _ = f.schedule(t, renamed(pod(), "second"))
	require.Empty(t, got, "it is in use")
}

// TestWhatWasStoredStaysKnown checks a pod with two claims. The allocation of the first claim is stored, and the API server
// rejects the write of the second. The device of the first claim stays in use, although the watch has not delivered that write.
func TestWhatWasStoredStaysKnown(t *testing.T) {
	f := startFallible(t, class(), slice(0, 1), renamed(claim(1), "first"), renamed(claim(1), "second"), renamed(claim(2), "third"))
	both := renamed(pod(), "first")
	both.Spec.ResourceClaims = append(both.Spec.ResourceClaims, v1.PodResourceClaim{Name: "other", ResourceClaimName: ptr.To("second")})
	f.write = func(store func() error) error {
		f.write = func(func() error) error {
			return apierrors.NewForbidden(resourceapi.Resource("resourceclaims"), "second", nil)
		}
		return store()
	}
	_, status := f.schedule(t, both)
	require.Equal(t, fwk.Error, status.Code())
	f.write = nil
	got, _ := f.schedule(t, renamed(pod(), "third"))
	require.Empty(t, got)
}

// TestEarlierLeader checks that a scheduler reads the last write of the previous leader from the API server, because its own
// watch has not delivered that write. PreFilter fails if this read fails.
func TestEarlierLeader(t *testing.T) {
	f := startFallible(t, class(), slice(0), renamed(claim(1), "first"), renamed(claim(1), "second"))
	written := held(renamed(claim(1), "first"))
	written.ResourceVersion = "2"
	require.NoError(t, f.client.Tracker().Update(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), written, written.Namespace))
	got, _ := f.schedule(t, renamed(pod(), "second"))
	require.Empty(t, got)

	f = startFallible(t, class(), slice(0), renamed(claim(1), "first"))
	f.client.PrependReactor("list", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &resourceapi.ResourceClaimList{}, io.ErrUnexpectedEOF
	})
	_, status := f.PreFilter(f.ctx, framework.NewCycleState(), renamed(pod(), "first"), nil)
	require.ErrorIs(t, status.AsError(), io.ErrUnexpectedEOF, "it does not begin without")
}

// TestEverySchedulerHasItsOwn checks that each of several schedulers in one process has its own profiles.
func TestEverySchedulerHasItsOwn(t *testing.T) {
	_, one := newHandle(t)
	_, other := newHandle(t)
	var s schedulers
	shared := newShared()
	first := s.of(one, shared.guard, shared.gates)
	require.Same(t, first, s.of(one, shared.guard, shared.gates))
	second := s.of(other, shared.guard, shared.gates)
	require.NotSame(t, first, second)
	require.NotSame(t, first.profiles, second.profiles)
	require.Same(t, second, s.of(other, shared.guard, shared.gates))
}

// TestOutcomesAreLabels checks that the metrics start with zero for each outcome.
func TestOutcomesAreLabels(t *testing.T) {
	var outcomes, ends []string
	for _, outcome := range pendingwrites.Outcomes {
		outcomes = append(outcomes, string(outcome))
	}
	for _, end := range hold.Ends {
		ends = append(ends, string(end))
	}
	require.Equal(t, metrics.PendingWriteOutcomes, outcomes)
	require.Equal(t, metrics.HoldEnds, ends)
}

// TestStoredForAPodThatIsGone stores the allocation of a claim for extended resources. The watch is late, and the scheduler
// stops waiting for the claim because the pod is gone. No other claim may get the device.
func TestStoredForAPodThatIsGone(t *testing.T) {
	f := startFallible(t, class(), slice(0), constrain(t, renamed(claim(1), "other"), "any", "devices.size() == 1"))
	made := renamed(claim(1), "made")
	made.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "gone", UID: "gone", Controller: ptr.To(true)}}
	require.NoError(t, f.client.Tracker().Add(made))
	made.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(0)}},
	}}
	claims := f.watched.ClientSet().ResourceV1().ResourceClaims(made.Namespace)
	stored, err := claims.UpdateStatus(f.ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, f.watched.SharedDRAManager().ResourceClaims().AssumeClaimAfterAPICall(stored), "pod of claim default/made got deleted")

	got, status := f.schedule(t, renamed(pod(), "other"))
	require.Empty(t, got)
	require.True(t, status.IsRejected(), status)
}

// TestBoundPodsKeepTheirClaims checks that a pod keeps its claims if it is bound although the binding seemed to fail.
func TestBoundPodsKeepTheirClaims(t *testing.T) {
	for name, test := range map[string]struct {
		// live returns the API server's version of the pod, or nil if the pod is deleted.
		live     func(*v1.Pod) *v1.Pod
		failures int
		keeps    bool
	}{
		"bound":                {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = nodeName; return p }, keeps: true},
		"bound, told later":    {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = nodeName; return p }, keeps: true, failures: 1},
		"not bound":            {live: func(p *v1.Pod) *v1.Pod { return p }},
		"bound by somebody":    {live: func(p *v1.Pod) *v1.Pod { p.Spec.NodeName = "another"; return p }, keeps: true},
		"another pod, bound":   {live: func(p *v1.Pod) *v1.Pod { p.UID, p.Spec.NodeName = "another", nodeName; return p }},
		"gone":                 {},
		"gone, and told later": {failures: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFallible(t, class(), slice(0), renamed(claim(1), "first"))
			user := renamed(pod(), "first")
			if test.live != nil {
				require.NoError(t, f.client.Tracker().Add(test.live(user.DeepCopy())))
			}
			failures := test.failures
			f.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				failures--
				return failures >= 0, nil, errors.New("no answer")
			})
			state := framework.NewCycleState()
			_, status := f.PreFilter(f.ctx, state, user, nil)
			require.True(t, status.IsSuccess(), status)
			require.True(t, f.Filter(f.ctx, state, user, node(nodeName)).IsSuccess())
			require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
			require.True(t, f.PreBind(f.ctx, state, user, nodeName).IsSuccess())
			before := len(f.client.Actions())
			f.Unreserve(f.ctx, state, user, nodeName)
			patches := 0
			for _, action := range f.client.Actions()[before:] {
				if action.Matches("patch", "resourceclaims/status") || action.GetVerb() == "patch" && action.GetResource().Resource == "resourceclaims" {
					patches++
				}
			}
			require.Equal(t, !test.keeps, patches > 0, "%v", f.client.Actions()[before:])
		})
	}
}

// reservedFor allocates a device of a node to a claim, and reserves the claim for a pod.
func reservedFor(user *v1.Pod, of *resourceapi.ResourceClaim, device int64) *resourceapi.ResourceClaim {
	of.Finalizers = []string{resourceapi.Finalizer}
	of.Status.Allocation = &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
			{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(device)},
		}},
		NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{nodeName}},
		}}}},
	}
	of.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: user.Name, UID: user.UID}}
	return of
}

// TestNothingIsTakenFromBoundPods checks pods that seem to fit nowhere. Such a pod keeps its devices if another scheduler has
// bound it, or if the scheduler can't find out whether the pod is bound.
func TestNothingIsTakenFromBoundPods(t *testing.T) {
	for name, test := range map[string]struct {
		node    string
		failure error
		says    string
		takes   bool
	}{
		"bound":     {node: nodeName, says: "the pod is bound to node " + nodeName + " already, and keeps its devices"},
		"not bound": {takes: true, says: "deallocation of ResourceClaim completed"},
		"not known": {failure: errors.New("no answer"), says: "the scheduler does not know whether the pod is bound, so the pod keeps its devices: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			user := renamed(pod(), "first")
			f := startFallible(t, class(), slice(0), reservedFor(user, renamed(claim(1), "first"), 0))
			live := user.DeepCopy()
			live.Spec.NodeName = test.node
			require.NoError(t, f.client.Tracker().Add(live))
			f.client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return test.failure != nil, nil, test.failure
			})
			state := framework.NewCycleState()
			_, status := f.PreFilter(f.ctx, state, user, nil)
			require.True(t, status.IsSuccess(), status)
			require.False(t, f.Filter(f.ctx, state, user, node("other")).IsSuccess())
			_, status = f.PostFilter(f.ctx, state, user, framework.NewDefaultNodeToStatus())
			require.Equal(t, test.says, status.Message())
			stored, err := f.client.ResourceV1().ResourceClaims("default").Get(t.Context(), "first", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, test.takes, stored.Status.Allocation == nil)
		})
	}
}

// TestNothingIsTakenFromBoundPodsOfAGroup checks that a bound pod of a group keeps its devices when the group seems to fit
// nowhere.
func TestNothingIsTakenFromBoundPodsOfAGroup(t *testing.T) {
	user := renamed(pod(), "first")
	f := startFallible(t, class(), slice(0), reservedFor(user, renamed(claim(1), "first"), 0))
	live := user.DeepCopy()
	live.Spec.NodeName = nodeName
	require.NoError(t, f.client.Tracker().Add(live))
	_, status := f.PodGroupPostFilter(f.ctx, nil, group{pods: []*v1.Pod{renamed(pod(), "free"), user}}, nil)
	require.Equal(t, fwk.Unschedulable, status.Code())
	require.Equal(t, "first: the pod is bound to node "+nodeName+" already, and keeps its devices", status.Message())
}

type group struct {
	fwk.PodGroupInfo
	pods []*v1.Pod
}

func (g group) GetUnscheduledPods() []*v1.Pod { return g.pods }

// TestUnreserveBeforeBinding checks that Unreserve sends no request to the API server if binding has not begun.
func TestUnreserveBeforeBinding(t *testing.T) {
	f := startFallible(t, class(), slice(0), renamed(claim(1), "first"))
	user := renamed(pod(), "first")
	state := framework.NewCycleState()
	_, status := f.PreFilter(f.ctx, state, user, nil)
	require.True(t, status.IsSuccess(), status)
	require.True(t, f.Filter(f.ctx, state, user, node(nodeName)).IsSuccess())
	require.True(t, f.Reserve(f.ctx, state, user, nodeName).IsSuccess())
	before := len(f.client.Actions())
	f.Unreserve(f.ctx, state, user, nodeName)
	require.Len(t, f.client.Actions(), before)
	require.Nil(t, f.resolver.Manager.ResourceClaims().GetPendingAllocation("first"))
}
