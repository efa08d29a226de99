// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"errors"
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/pendingwrites"
)

// What an allocator is made from is copied for each pod: the names of all devices in use
// and the list of all slices, which are hundreds of thousands of words in a large
// cluster. Upstream's PreFilter asks for them to make its allocator. Asking again to make
// ours would double the cost of each scheduling cycle, and the memory of each pod that is
// being bound. So our plugin looks over the shoulder of upstream's: it puts itself
// between that and the scheduler's lists, and keeps what was handed out.

// Material is what an allocator is made from. Nobody modifies it.
type Material struct {
	Allocated *structured.AllocatedState
	slices    []*resourceapi.ResourceSlice
}

// Recorder is the scheduler's handle, and its lists, as upstream's plugin sees them.
type Recorder struct {
	fwk.Handle
	manager fwk.SharedDRAManager
	// Writes are the pending ones, nil where nothing is allocated.
	Writes *pendingwrites.Writes

	// turn is held by the one PreFilter that is looked at.
	turn sync.Mutex
	// mutex is held to read and write what follows.
	mutex sync.Mutex
	// seen is what was handed out during this turn, nil between turns. If others ask for
	// the same meanwhile, theirs is as good.
	seen *Material
	// kept are results of allocations that count as in use during this turn.
	kept func() []resourceapi.DeviceRequestAllocationResult
}

// NewRecorder returns a recorder of what a handle hands out.
func NewRecorder(handle fwk.Handle) *Recorder {
	return &Recorder{Handle: handle, manager: handle.SharedDRAManager()}
}

// During runs upstream's PreFilter and returns what it was given, in which what is kept counts as in
// use. kept is asked after the lists.
func (o *Recorder) During(kept func() []resourceapi.DeviceRequestAllocationResult, preFilter func()) *Material {
	o.turn.Lock()
	defer o.turn.Unlock()
	seen := &Material{}
	o.set(seen, kept)
	defer o.set(nil, nil)
	preFilter()
	return seen
}

func (o *Recorder) set(seen *Material, kept func() []resourceapi.DeviceRequestAllocationResult) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.seen, o.kept = seen, kept
}

// ClientSet implements [fwk.Handle].
func (o *Recorder) ClientSet() kubernetes.Interface {
	if o.Writes == nil {
		return o.Handle.ClientSet()
	}
	return o.Writes.Client()
}

// SharedDRAManager implements [fwk.Handle].
func (o *Recorder) SharedDRAManager() fwk.SharedDRAManager {
	if o.manager == nil {
		return nil
	}
	return watchedManager{o.manager, o}
}

type watchedManager struct {
	fwk.SharedDRAManager
	*Recorder
}

// ResourceClaims implements [fwk.SharedDRAManager].
func (m watchedManager) ResourceClaims() fwk.ResourceClaimTracker {
	return watchedClaims{m.manager.ResourceClaims(), m.Recorder}
}

// ResourceSlices implements [fwk.SharedDRAManager].
func (m watchedManager) ResourceSlices() fwk.ResourceSliceLister {
	return watchedSlices{m.manager.ResourceSlices(), m.Recorder}
}

type watchedClaims struct {
	fwk.ResourceClaimTracker
	*Recorder
}

// ListAllAllocatedDevices implements [fwk.ResourceClaimTracker].
func (c watchedClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	state, err := c.keep(structured.Features{}, func() (*structured.AllocatedState, error) {
		devices, err := c.ResourceClaimTracker.ListAllAllocatedDevices()
		return exclusively(devices), err
	})
	if err != nil {
		return nil, err
	}
	return state.AllocatedDevices, nil
}

// GatherAllocatedState implements [fwk.ResourceClaimTracker].
func (c watchedClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	return c.keep(structured.Features{ConsumableCapacity: true}, c.ResourceClaimTracker.GatherAllocatedState)
}

// keep keeps what is handed out, with what else counts as in use: the lists are copies.
func (o *Recorder) keep(features structured.Features, list func() (*structured.AllocatedState, error)) (*structured.AllocatedState, error) {
	for {
		ends := o.ends()
		state, err := list()
		if err != nil {
			return nil, err
		}
		o.mutex.Lock()
		seen, kept := o.seen, o.kept
		o.mutex.Unlock()
		if seen == nil {
			return state, nil
		}
		allocator.AddAllocated(state, kept(), features)
		if ends != o.ends() {
			// An allocation may have been too late for the list, and pending no more when that was asked.
			continue
		}
		o.mutex.Lock()
		defer o.mutex.Unlock()
		seen.Allocated = state
		return state, nil
	}
}

func (o *Recorder) ends() uint64 {
	if o.Writes == nil {
		return 0
	}
	return o.Writes.Ends()
}

// AssumedClaimRestore implements [fwk.ResourceClaimTracker]. Upstream's plugin asks for it when a pod can't
// be bound after its claim got devices, so that the claim is again as the watch has told. That is as it was
// before, as long as the watch is late, and the devices would seem to be free. The claim was assumed because
// the API server has stored it, so nothing has to be undone: what becomes of it, the watch will tell. Where nothing is
// written it is undone.
func (c watchedClaims) AssumedClaimRestore(namespace, name string) {
	if c.Writes == nil {
		c.ResourceClaimTracker.AssumedClaimRestore(namespace, name)
	}
}

// SignalClaimPendingAllocation implements [fwk.ResourceClaimTracker]: it is how upstream's plugin reserves devices.
func (c watchedClaims) SignalClaimPendingAllocation(uid types.UID, claim *resourceapi.ResourceClaim) error {
	if c.Writes != nil {
		if err := c.Writes.Check(claim); err != nil {
			return err
		}
	}
	return c.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
}

// AssumeClaimAfterAPICall implements [fwk.ResourceClaimTracker]. Upstream's plugin asks for
// it until the claim that it has made for a pod's extended resources is in the cache. If
// it is not because pod and claim were deleted, that takes two minutes, in which the
// devices stay in flight. An error other than the cache's ends it; what the claim has got is kept all
// the same, until the watch has told of it or it is gone (package pendingwrites).
func (c watchedClaims) AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error {
	err := c.ResourceClaimTracker.AssumeClaimAfterAPICall(claim)
	if errors.Is(err, assumecache.ErrNotFound) && c.hasLostOwner(claim) {
		return fmt.Errorf("pod of claim %s got deleted", klog.KObj(claim))
	}
	return err
}

func (c watchedClaims) hasLostOwner(claim *resourceapi.ResourceClaim) bool {
	owner := metav1.GetControllerOf(claim)
	if owner == nil {
		return false
	}
	pods := c.SharedInformerFactory().Core().V1().Pods().Lister()
	pod, err := pods.Pods(claim.Namespace).Get(owner.Name)
	return apierrors.IsNotFound(err) || err == nil && pod.UID != owner.UID
}

type watchedSlices struct {
	fwk.ResourceSliceLister
	*Recorder
}

// ListWithDeviceTaintRules implements [fwk.ResourceSliceLister].
func (s watchedSlices) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	slices, err := s.ResourceSliceLister.ListWithDeviceTaintRules()
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.seen != nil {
		s.seen.slices = slices
	}
	return slices, nil
}

// exclusively is the state in which nothing but whole devices is in use.
func exclusively(devices sets.Set[structured.DeviceID]) *structured.AllocatedState {
	return &structured.AllocatedState{
		AllocatedDevices:         devices,
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}
