// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// allocatedState is what was allocated when the allocator was made, with an index
// of the shared devices: the shares of a device are many, and are asked for a
// device at a time.
type allocatedState struct {
	structured.AllocatedState
	sharedDevices sets.Set[structured.DeviceID]
}

func newAllocatedState(state structured.AllocatedState) *allocatedState {
	s := &allocatedState{AllocatedState: state, sharedDevices: sets.New[structured.DeviceID]()}
	for share := range state.AllocatedSharedDeviceIDs {
		s.sharedDevices.Insert(share.GetDeviceID())
	}
	for device := range state.AggregatedCapacity {
		s.sharedDevices.Insert(device)
	}
	return s
}

// isShared tells whether the device has been allocated shares of, with capacity
// or without.
func (s *allocatedState) isShared(id structured.DeviceID) bool {
	return len(s.sharedDevices) > 0 && s.sharedDevices.Has(id)
}

// isAllocated tells whether the device is in use at all.
func (s *allocatedState) isAllocated(id structured.DeviceID) bool {
	return s.AllocatedDevices.Has(id) || s.isShared(id)
}

// consumed is what the shares of the device consume together.
func (s *allocatedState) consumed(id structured.DeviceID) capacities {
	aggregated := s.AggregatedCapacity[id]
	consumed := make(capacities, len(aggregated))
	for name, quantity := range aggregated {
		consumed[name] = *quantity
	}
	return consumed
}
