// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
)

// What an allocator is made from is copied for each pod: the names of all devices in use
// and the list of all slices, which are hundreds of thousands of words in a large
// cluster. Upstream's PreFilter asks for them to make its allocator. Asking again to make
// ours would double the cost of each scheduling cycle, and the memory of each pod that is
// being bound. So our plugin looks over the shoulder of upstream's: it puts itself
// between that and the scheduler's lists, and keeps what was handed out.

// material is what an allocator is made from. Nobody modifies it.
type material struct {
	allocated *structured.AllocatedState
	slices    []*resourceapi.ResourceSlice
}

// recorder is the scheduler's handle, and its lists, as upstream's plugin sees them.
type recorder struct {
	fwk.Handle
	manager fwk.SharedDRAManager

	// turn is held by the one PreFilter that is looked at.
	turn sync.Mutex
	// mutex is held to read and write what follows.
	mutex sync.Mutex
	// seen is what was handed out during this turn, nil between turns. If others ask for
	// the same meanwhile, theirs is as good.
	seen *material
	// held are results of allocations that count as in use during this turn.
	held []resourceapi.DeviceRequestAllocationResult
}

func newRecorder(handle fwk.Handle) *recorder {
	return &recorder{Handle: handle, manager: handle.SharedDRAManager()}
}

// during runs upstream's PreFilter and returns what it was given, in which what is held counts as in
// use.
func (o *recorder) during(held []resourceapi.DeviceRequestAllocationResult, preFilter func()) *material {
	o.turn.Lock()
	defer o.turn.Unlock()
	seen := &material{}
	o.set(seen, held)
	defer o.set(nil, nil)
	preFilter()
	return seen
}

func (o *recorder) set(seen *material, held []resourceapi.DeviceRequestAllocationResult) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.seen, o.held = seen, held
}

// SharedDRAManager implements [fwk.Handle].
func (o *recorder) SharedDRAManager() fwk.SharedDRAManager {
	if o.manager == nil {
		return nil
	}
	return watchedManager{o.manager, o}
}

type watchedManager struct {
	fwk.SharedDRAManager
	*recorder
}

// ResourceClaims implements [fwk.SharedDRAManager].
func (m watchedManager) ResourceClaims() fwk.ResourceClaimTracker {
	return watchedClaims{m.manager.ResourceClaims(), m.recorder}
}

// ResourceSlices implements [fwk.SharedDRAManager].
func (m watchedManager) ResourceSlices() fwk.ResourceSliceLister {
	return watchedSlices{m.manager.ResourceSlices(), m.recorder}
}

type watchedClaims struct {
	fwk.ResourceClaimTracker
	*recorder
}

// ListAllAllocatedDevices implements [fwk.ResourceClaimTracker].
func (c watchedClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	devices, err := c.ResourceClaimTracker.ListAllAllocatedDevices()
	if err == nil {
		c.keepAllocated(exclusively(devices), structured.Features{})
	}
	return devices, err
}

// GatherAllocatedState implements [fwk.ResourceClaimTracker].
func (c watchedClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	state, err := c.ResourceClaimTracker.GatherAllocatedState()
	if err == nil {
		c.keepAllocated(state, structured.Features{ConsumableCapacity: true})
	}
	return state, err
}

// keepAllocated keeps what is handed out, with what is held in it: the lists are copies.
func (o *recorder) keepAllocated(state *structured.AllocatedState, features structured.Features) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.seen != nil {
		allocator.AddAllocated(state, o.held, features)
		o.seen.allocated = state
	}
}

type watchedSlices struct {
	fwk.ResourceSliceLister
	*recorder
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
