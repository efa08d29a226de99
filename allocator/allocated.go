// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/published"
)

// AllocatedTo returns the devices and capacity that allocated claims take from others, counted as the scheduler's plugin does. It
// is for programs without a scheduler that provides this state. A claim with admin access takes no device. Without the feature
// ConsumableCapacity a share of a device counts as the whole device. Claims without an allocation don't count.
func AllocatedTo(claims []*resourceapi.ResourceClaim, features structured.Features) structured.AllocatedState {
	state := availability.Nothing()
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		AddAllocated(&state, claim.Status.Allocation.Devices.Results, features)
	}
	return state
}

// AddAllocated adds the devices and capacity of allocation results to the state, counted as [AllocatedTo] does. The sets of the
// state must not be nil. Shares that the state contains are not counted again.
func AddAllocated(state *structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult, features structured.Features) {
	for i := range results {
		result := &results[i]
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case ptr.Deref(result.AdminAccess, false):
		case features.ConsumableCapacity && result.ShareID != nil:
			share := structured.MakeSharedDeviceID(id, result.ShareID)
			if state.AllocatedSharedDeviceIDs.Has(share) {
				// Its capacity has been counted.
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(share)
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		default:
			state.AllocatedDevices.Insert(id)
		}
	}
}

// CountingFeatures returns the features that affect the devices and capacity of allocated claims, all turned on. They are for
// programs that count objects in the API server, which does not store fields of features that are off.
func CountingFeatures() structured.Features { return published.Features() }

type (
	// PublishedPool is a pool with the slices of all nodes. A program that judges allocations made by others uses it.
	PublishedPool = published.Pool
	// Overlap is the reason why chosen devices conflict with devices of other claims.
	Overlap = published.Overlap
)

// NewPublishedPool returns the pool of a driver, made from its slices. There may be no slices.
func NewPublishedPool(driver, name string, slices []*resourceapi.ResourceSlice) *PublishedPool {
	return published.NewPool(driver, name, slices)
}
