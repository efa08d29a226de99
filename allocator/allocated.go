// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// AllocatedTo is what allocated claims keep from others, as the scheduler's plugin counts
// it, for those who have no scheduler that tells them. With admin access a claim has no
// device for itself. Without the feature ConsumableCapacity a share of a device counts as
// the whole device. Claims without an allocation don't matter.
func AllocatedTo(claims []*resourceapi.ResourceClaim, features structured.Features) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		AddAllocated(&state, claim.Status.Allocation.Devices.Results, features)
	}
	return state
}

// AddAllocated adds what results of an allocation keep from others, counted as [AllocatedTo] does. The
// state has to have its sets.
func AddAllocated(state *structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult, features structured.Features) {
	for i := range results {
		result := &results[i]
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case ptr.Deref(result.AdminAccess, false):
		case features.ConsumableCapacity && result.ShareID != nil:
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		default:
			state.AllocatedDevices.Insert(id)
		}
	}
}
