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

// Recorder wraps the scheduler's handle and its lists for upstream's plugin.
type Recorder struct {
	fwk.Handle
	manager fwk.SharedDRAManager
	// Writes tracks pending writes. It is nil if nothing is allocated.
	Writes *pendingwrites.Writes

	// recording is held while a PreFilter runs and its lists are recorded.
	recording sync.Mutex
	// mutex guards the fields below.
	mutex sync.Mutex
	// seen holds the recorded lists, nil while no PreFilter is recorded. If another caller lists meanwhile, its lists are
	// recorded: they are equally current.
	seen *Material
	// reserved returns further devices that count as in use for the recorded PreFilter.
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

// AssumedClaimRestore implements [fwk.ResourceClaimTracker]. If a pod can't be bound after its claim got devices, upstream's
// plugin calls it to restore the informer's version of the claim. If the watch is late, that version has no devices, and the
// devices would seem free. The claim was assumed because the API server had stored it, so there is nothing to undo: the watch
// delivers all later changes. If Writes is nil, this program allocates nothing, and upstream's method runs unchanged.
func (c watchedClaims) AssumedClaimRestore(namespace, name string) {
	if c.Writes == nil {
		c.ResourceClaimTracker.AssumedClaimRestore(namespace, name)
	}
}

// SignalClaimPendingAllocation implements [fwk.ResourceClaimTracker]. Upstream's plugin reserves devices with it.
func (c watchedClaims) SignalClaimPendingAllocation(uid types.UID, claim *resourceapi.ResourceClaim) error {
	if c.Writes != nil {
		if err := c.Writes.Check(claim); err != nil {
			return err
		}
	}
	return c.ResourceClaimTracker.SignalClaimPendingAllocation(uid, claim)
}

// AssumeClaimAfterAPICall implements [fwk.ResourceClaimTracker]. Upstream's plugin retries it until the claim that it made for
// extended resources is in the cache. If pod and claim were deleted, the retries take two minutes, and the devices stay in
// flight. Any error but ErrNotFound ends the retries, so another error is returned if the pod is gone. Package pendingwrites
// still keeps the devices in use until the claim is in the cache or gone.
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

// exclusively returns the state with the given devices in use as whole devices.
func exclusively(devices sets.Set[structured.DeviceID]) *structured.AllocatedState {
	return &structured.AllocatedState{
		AllocatedDevices:         devices,
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}
