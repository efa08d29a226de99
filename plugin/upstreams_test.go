// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/cycle"
)

type rightState struct {
	before    int
	allocator structured.Allocator
	after     string
}

type otherState struct{ Allocator structured.Allocator }

type noField struct{ Assigner structured.Allocator }

type otherFieldType struct {
	allocator *allocator.Allocator //nolint:unused // found by reflection
}

type notAStruct map[string]string

func (*rightState) Clone() fwk.StateData     { return nil }
func (*otherState) Clone() fwk.StateData     { return nil }
func (*noField) Clone() fwk.StateData        { return nil }
func (*otherFieldType) Clone() fwk.StateData { return nil }
func (notAStruct) Clone() fwk.StateData      { return nil }

func TestFieldExchange(t *testing.T) {
	state := &rightState{before: 1, after: "untouched"}
	e, err := newFieldExchange(typeOf(state))
	require.NoError(t, err)

	field, err := e.allocator(state)
	require.NoError(t, err)
	require.Nil(t, *field)
	ours := &allocator.Allocator{}
	*field = ours

	require.Same(t, ours, state.allocator)
	require.Equal(t, 1, state.before)
	require.Equal(t, "untouched", state.after)

	_, err = e.allocator(&otherState{})
	require.ErrorContains(t, err, "its cycle state is *plugin.otherState, but at start it was *plugin.rightState")
}

func TestFieldExchangeRefusesWhatChanged(t *testing.T) {
	for name, test := range map[string]struct {
		state fwk.StateData
		want  string
	}{
		"renamed field":    {&noField{}, "has no field allocator"},
		"other field type": {&otherFieldType{}, "is a *allocator.Allocator, not a structured.Allocator"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newFieldExchange(typeOf(test.state))
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "build it with the version of Kubernetes that go.mod names")
		})
	}
}

func TestExchangeRefusesOtherStates(t *testing.T) {
	for name, test := range map[string]struct {
		state fwk.StateData
		want  string
	}{
		"none":          {nil, "its cycle state is <nil>, not a pointer to a struct"},
		"not a pointer": {notAStruct{}, "its cycle state is plugin.notAStruct, not a pointer to a struct"},
		"other type":    {&rightState{}, "not a " + stateTypeName},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newExchange(test.state)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// counted counts how often the list of devices in use (states) and the list of slices (lists) are copied.
type counted struct {
	fwk.SharedDRAManager
	states, lists atomic.Int64
}

func (c *counted) ResourceClaims() fwk.ResourceClaimTracker {
	return countedClaims{c.SharedDRAManager.ResourceClaims(), c}
}

func (c *counted) ResourceSlices() fwk.ResourceSliceLister {
	return countedSlices{c.SharedDRAManager.ResourceSlices(), c}
}

type countedClaims struct {
	fwk.ResourceClaimTracker
	counted *counted
}

func (c countedClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	c.counted.states.Add(1)
	return c.ResourceClaimTracker.GatherAllocatedState()
}

func (c countedClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	c.counted.states.Add(1)
	return c.ResourceClaimTracker.ListAllAllocatedDevices()
}

type countedSlices struct {
	fwk.ResourceSliceLister
	counted *counted
}

func (s countedSlices) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	s.counted.lists.Add(1)
	return s.ResourceSliceLister.ListWithDeviceTaintRules()
}

// TestNothingIsCopiedTwice checks that celset's allocator reuses the copies made for upstream's allocator, with and without
// shared devices.
func TestNothingIsCopiedTwice(t *testing.T) {
	for _, shares := range []bool{false, true} {
		objects := []runtime.Object{class(), slice(0, 1, 2), constrain(t, claim(2), "two", "size(devices) == 2")}
		ctx, h := newHandle(t, objects...)
		manager := &counted{SharedDRAManager: h.Manager}
		h.Manager = manager
		fts := features()
		fts.EnableDRAConsumableCapacity = shares
		pl, err := newPlugin(ctx, nil, h, fts, true, newMetrics(t), newShared())
		require.NoError(t, err)
		h.Start(ctx, t, objects...)
		manager.states.Store(0)
		manager.lists.Store(0)

		state := framework.NewCycleState()
		_, status := pl.PreFilter(ctx, state, pod(), nil)
		require.True(t, status.IsSuccess(), "%v", status)
		require.NotNil(t, cycle.ClaimsIn(state).Ours)
		require.EqualValues(t, 1, manager.states.Load())
		require.EqualValues(t, 1, manager.lists.Load())
	}
}

// leftover returns the claim that was made for the extended resources of the pod.
func leftover(of *v1.Pod) *resourceapi.ResourceClaim {
	c := claim(1)
	c.Name = of.Name + "-extended-resources-x7v2p"
	c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: of.Name, UID: of.UID, Controller: ptr.To(true)}}
	return c
}

func TestPodIsTriedAgainWhenItsLeftoverIsGone(t *testing.T) {
	ctx, pl := start(t, true)
	logger := klog.FromContext(ctx)
	events, err := pl.EventsToRegister(ctx)
	require.NoError(t, err)
	upstream, err := pl.DynamicResources.EventsToRegister(ctx)
	require.NoError(t, err)
	require.Len(t, events, len(upstream)+1)

	owner, other := pod(), pod()
	owner.Spec.ResourceClaims = nil
	other.Name, other.UID = "other", "other"
	again := pod() // a pod of the same name with another UID
	again.UID = "again"
	unowned := leftover(owner)
	unowned.OwnerReferences = nil
	plain := leftover(owner)
	plain.Annotations = nil
	ownerName := types.NamespacedName{Namespace: "default", Name: "pod"}

	seen := false
	for i, event := range events[:len(upstream)] {
		require.Empty(t, cmp.Diff(upstream[i].Event, event.Event))
		if event.Event.Resource != fwk.ResourceClaim {
			continue
		}
		seen = true
		for name, tc := range map[string]struct {
			pod      *v1.Pod
			old, new any
			want     fwk.QueueingHint
			pods     []types.NamespacedName
		}{
			"gone":                  {pod: owner, old: leftover(owner), want: fwk.Queue, pods: []types.NamespacedName{ownerName}},
			"another pod's":         {pod: other, old: leftover(owner), want: fwk.QueueSkip, pods: []types.NamespacedName{ownerName}},
			"of an earlier pod":     {pod: again, old: leftover(owner), want: fwk.QueueSkip, pods: []types.NamespacedName{ownerName}},
			"without owner":         {pod: owner, old: unowned, want: fwk.QueueSkip},
			"made by somebody else": {pod: owner, old: plain, want: fwk.QueueSkip},
			"it is still there":     {pod: owner, old: leftover(owner), new: leftover(owner), want: fwk.QueueSkip},
			"it is new":             {pod: owner, new: leftover(owner), want: fwk.QueueSkip},
		} {
			t.Run(name, func(t *testing.T) {
				got, err := event.QueueingHintFn(logger, tc.pod, tc.old, tc.new)
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				considered, err := event.PreQueueingHintFn(logger, tc.old, tc.new)
				require.NoError(t, err)
				require.False(t, considered.AllPods)
				require.ElementsMatch(t, tc.pods, considered.Pods)
			})
		}
		t.Run("nobody knows what is gone", func(t *testing.T) {
			got, err := event.QueueingHintFn(logger, owner, cache.DeletedFinalStateUnknown{}, nil)
			require.NoError(t, err)
			require.Equal(t, fwk.Queue, got)
		})
	}
	require.True(t, seen)
}

func TestAllPodsAreConsideredWhereUpstreamConsidersThem(t *testing.T) {
	require.Nil(t, considerOwnerOfLeftover(nil))
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		result fwk.PreQueueingHintResult
		err    error
	}{
		"all":   {result: fwk.PreQueueingHintResult{AllPods: true}},
		"error": {err: failed},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := considerOwnerOfLeftover(func(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
				return tc.result, tc.err
			})(klog.Background(), leftover(pod()), nil)
			require.Equal(t, tc.err, err)
			require.Empty(t, cmp.Diff(tc.result, got))
		})
	}
}

const extendedResource v1.ResourceName = "example.com/mla"

// held allocates a device to the claim.
func held(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(0)}},
	}}
	return c
}

func TestPodsAreTriedAgainWhenDevicesInFlightAreFree(t *testing.T) {
	extendedClass := class()
	extendedClass.Spec.ExtendedResourceName = ptr.To(string(extendedResource))
	generated, waitsForItsClaim, extended, plain := pod(), pod(), pod(), pod()
	waitsForItsClaim.Spec.ResourceClaims[0] = v1.PodResourceClaim{Name: "mla", ResourceClaimTemplateName: ptr.To("template")}
	generated.Spec.ResourceClaims[0] = waitsForItsClaim.Spec.ResourceClaims[0]
	generated.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "mla", ResourceClaimName: ptr.To("claim")}}
	extended.Spec.ResourceClaims = nil
	extended.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), extendedResource: resource.MustParse("1")},
	}}}
	named := extended.DeepCopy()
	named.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "claim"}
	plain.Spec.ResourceClaims = nil
	bound := pod()
	bound.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}

	for name, test := range map[string]struct {
		claims []runtime.Object
		gone   any
		want   fwk.QueueingHint
	}{
		"the claim has no devices":                  {[]runtime.Object{claim(1)}, pod(), fwk.Queue},
		"the claim is gone":                         {nil, pod(), fwk.Queue},
		"the claim has devices":                     {[]runtime.Object{held(claim(1))}, pod(), fwk.QueueSkip},
		"the claim from a template is gone":         {nil, generated, fwk.Queue},
		"the claim from a template has devices":     {[]runtime.Object{held(claim(1))}, generated, fwk.QueueSkip},
		"the claim from a template was never there": {nil, waitsForItsClaim, fwk.QueueSkip},
		"extended resources, not named":             {nil, extended, fwk.Queue},
		"extended resources, gone":                  {nil, named, fwk.Queue},
		"extended resources, has devices":           {[]runtime.Object{held(claim(1))}, named, fwk.QueueSkip},
		"the pod was bound":                         {[]runtime.Object{claim(1)}, bound, fwk.QueueSkip},
		"no claims":                                 {nil, plain, fwk.QueueSkip},
		"nobody knows what is gone":                 {nil, cache.DeletedFinalStateUnknown{}, fwk.Queue},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]runtime.Object{extendedClass}, test.claims...)
			ctx, h := newHandle(t, objects...)
			pl, err := newPlugin(ctx, nil, h, features(), true, newMetrics(t), newShared())
			require.NoError(t, err)
			h.Start(ctx, t, objects...)

			events, err := pl.EventsToRegister(ctx)
			require.NoError(t, err)
			event := events[len(events)-1]
			require.Equal(t, fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, event.Event)
			hint, err := event.QueueingHintFn(klog.FromContext(ctx), pod(), test.gone, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, hint)
			considered, err := event.PreQueueingHintFn(klog.FromContext(ctx), test.gone, nil)
			require.NoError(t, err)
			require.Equal(t, fwk.PreQueueingHintResult{AllPods: test.want == fwk.Queue}, considered)
		})
	}
}

// TestNobodyWaitsForTheClaimOfAPodThatIsGone checks the scheduler's wait for a claim that was made for extended resources. The
// wait ends when the pod is deleted.
func TestNobodyWaitsForTheClaimOfAPodThatIsGone(t *testing.T) {
	alive, gone, again := pod(), pod(), pod()
	gone.Name = "gone"
	again.UID = "again" // a deleted pod with the name of a live pod
	unowned := leftover(alive)
	unowned.OwnerReferences = nil
	known := leftover(alive)
	known.Name = "known"
	known.ResourceVersion = "1"
	ctx, h := newHandle(t, alive, known)
	pl, err := newPlugin(ctx, nil, h, features(), true, newMetrics(t), newShared())
	require.NoError(t, err)
	h.Start(ctx, t, alive, known)

	claims := pl.watched.SharedDRAManager().ResourceClaims()
	require.NoError(t, claims.AssumeClaimAfterAPICall(known))
	require.ErrorIs(t, claims.AssumeClaimAfterAPICall(leftover(alive)), assumecache.ErrNotFound)
	require.ErrorIs(t, claims.AssumeClaimAfterAPICall(unowned), assumecache.ErrNotFound)
	for _, owner := range []metav1.Object{gone, again} {
		claim := leftover(owner.(*v1.Pod))
		err := claims.AssumeClaimAfterAPICall(claim)
		require.EqualError(t, err, "pod of claim default/"+claim.Name+" got deleted")
		require.NotErrorIs(t, err, assumecache.ErrNotFound)
	}
}
