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

// AllocatedTo is what allocated claims keep from others, as the scheduler's plugin counts
// it, for those who have no scheduler that tells them. With admin access a claim has no
// device for itself. Without the feature ConsumableCapacity a share of a device counts as
// the whole device. Claims without an allocation don't matter.
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

// AddAllocated adds what results of an allocation keep from others, counted as [AllocatedTo] does. The
// state has to have its sets. Shares that the state has are not counted again.
func AddAllocated(state *structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult, features structured.Features) {
	for i := range results {
		result := &results[i]
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case ptr.Deref(result.AdminAccess, false):
		case features.ConsumableCapacity && result.ShareID != nil:
			share := structured.MakeSharedDeviceID(id, result.ShareID)
			if state.AllocatedSharedDeviceIDs.Has(share) {
				// Its capacity is counted already.
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

// CountingFeatures returns the features that change what allocated claims keep from others, all of them on. They are for a
// program that counts what an API server has stored, because it stores nothing of features that are off.
func CountingFeatures() structured.Features { return published.Features() }

type (
	// PublishedPool is a pool as all nodes together see it, for a program that judges allocations that others have made.
	PublishedPool = published.Pool
	// Overlap says why devices that somebody has chosen can't be had beside those that others have.
	Overlap = published.Overlap
)

// NewPublishedPool returns the pool of a driver that slices are of, which may be none.
func NewPublishedPool(driver, name string, slices []*resourceapi.ResourceSlice) *PublishedPool {
	return published.NewPool(driver, name, slices)
}
