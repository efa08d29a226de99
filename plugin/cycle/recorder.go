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

	"github.com/celset/celset/plugin/pendingwrites"
)

// Recorder is the handle that upstream's plugin gets. It wraps the scheduler's handle and records the lists that upstream's
// PreFilter reads.
type Recorder struct {
	fwk.Handle
	manager fwk.SharedDRAManager
	// Writes tracks pending writes. It is nil in programs that write no allocations.
	Writes *pendingwrites.Writes

	// recording is locked while During runs, so that only one PreFilter is recorded at a time.
	recording sync.Mutex
	// mutex guards the fields below.
	mutex sync.Mutex
	// seen receives the recorded lists. It is nil while During does not run. If another caller lists meanwhile, its lists are
	// recorded, which is harmless: they are equally current.
	seen *Material
	// reserved is the parameter kept of During. It returns further devices that count as in use.
	reserved func() []resourceapi.DeviceRequestAllocationResult
}

// NewRecorder returns a Recorder that wraps a handle. Its lists come from the manager.
func NewRecorder(handle fwk.Handle, manager fwk.SharedDRAManager) *Recorder {
	return &Recorder{Handle: handle, manager: manager}
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
	state, err := c.listInUse(structured.Features{}, func() (*structured.AllocatedState, error) {
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
	return c.listInUse(structured.Features{ConsumableCapacity: true}, c.ResourceClaimTracker.GatherAllocatedState)
}

// AssumedClaimRestore implements [fwk.ResourceClaimTracker]. Upstream's plugin calls it if a pod can't be bound after its claim
// got devices, to restore the informer's version of the claim. If the watch is late, that version has no devices, and the
// devices would seem free. So with Writes nothing is restored: the API server has stored the claim, and the watch delivers all
// later changes. A program without Writes allocates nothing, and upstream's method runs unchanged.
func (c watchedClaims) AssumedClaimRestore(namespace, name string) {
	if c.Writes == nil {
		c.ResourceClaimTracker.AssumedClaimRestore(namespace, name)
	}
}

// SignalClaimPendingAllocation implements [fwk.ResourceClaimTracker]. Upstream's plugin calls it to reserve devices for a
// claim.
func (c watchedClaims) SignalClaimPendingAllocation(uid types.UID, claim *resourceapi.ResourceClaim) error {
	if c.Writes != nil {
		if err := c.Writes.Check(claim); err != nil {
			return err
		}
	}
	return c.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
}

// AssumeClaimAfterAPICall implements [fwk.ResourceClaimTracker]. Upstream's plugin calls it repeatedly until the cache has the
// claim that the plugin made for extended resources. If pod and claim were deleted, upstream repeats the call for two minutes,
// and the devices stay reserved. Any error but ErrNotFound ends the repetition, so this method returns another error if the pod
// is gone. Package pendingwrites still counts the devices as in use until the claim is in the cache or gone.
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

// exclusively returns a state with the given devices in use as a whole.
func exclusively(devices sets.Set[structured.DeviceID]) *structured.AllocatedState {
	return &structured.AllocatedState{
		AllocatedDevices:         devices,
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}
