// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
)

// allocatedState is what was allocated when the allocator was made, with an index
// of the shared devices: the shares of a device are many, and are asked for a
// device at a time.
type allocatedState struct {
	structured.AllocatedState
	// sharedDevices is made when it is needed first: most claims don't need it, and it is as
	// large as the cluster.
	sharedDevices func() sets.Set[structured.DeviceID]
}

func newAllocatedState(state structured.AllocatedState) *allocatedState {
	return &allocatedState{state, sync.OnceValue(func() sets.Set[structured.DeviceID] {
		devices := sets.New[structured.DeviceID]()
		for share := range state.AllocatedSharedDeviceIDs {
			devices.Insert(share.GetDeviceID())
		}
		for device := range state.AggregatedCapacity {
			devices.Insert(device)
		}
		return devices
	})}
}

// hasShared tells whether any device is shared.
func (s *allocatedState) hasShared() bool {
	return len(s.AllocatedSharedDeviceIDs) > 0 || len(s.AggregatedCapacity) > 0
}

// isShared tells whether the device has been allocated shares of, with capacity
// or without.
func (s *allocatedState) isShared(id structured.DeviceID) bool {
	return s.hasShared() && s.sharedDevices().Has(id)
}

// isAllocated tells whether the device is in use at all.
func (s *allocatedState) isAllocated(id structured.DeviceID) bool {
	return s.AllocatedDevices.Has(id) || s.isShared(id)
}
