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

// AllocatedTo returns the devices and the capacity that the given claims have allocated, counted as the scheduler's plugin
// counts them. It is for programs without a scheduler that provides this state. Results with admin access do not count as
// allocated. Without the feature ConsumableCapacity, a share of a device counts as the whole device.
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

// AddAllocated adds the devices and the capacity of allocation results to the state, counted like [AllocatedTo]. The sets of
// the state must not be nil. A share that is already part of the state is not added again.
func AddAllocated(state *structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult, features structured.Features) {
	for i := range results {
		result := &results[i]
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case ptr.Deref(result.AdminAccess, false):
		case features.ConsumableCapacity && result.ShareID != nil:
			share := structured.MakeSharedDeviceID(id, result.ShareID)
			if state.AllocatedSharedDeviceIDs.Has(share) {
				// The state already contains the capacity of this share.
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

// CountingFeatures returns the features that change how allocated devices and capacity are counted, all turned on. It is for
// programs that read objects from the API server. The API server does not store fields of features that are off.
func CountingFeatures() structured.Features { return published.Features() }

type (
	// PublishedPool is a pool with the slices of all nodes. It checks allocations that other programs made.
	PublishedPool = published.Pool
	// Overlap describes why devices of one claim conflict with devices of other claims.
	Overlap = published.Overlap
)

// NewPublishedPool returns a driver's pool with the given slices, which may be empty.
func NewPublishedPool(driver, name string, slices []*resourceapi.ResourceSlice) *PublishedPool {
	return published.NewPool(driver, name, slices)
}
