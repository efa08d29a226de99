// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Allocated is what allocated claims take from others, as the scheduler's plugin counts
// it: devices with admin access don't count. Without the feature ConsumableCapacity a share
// of a device counts as the whole device.
func (s *State) Allocated(consumableCapacity bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range s.Claims {
		for i := range results(claim) {
			result := &results(claim)[i]
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case ptr.Deref(result.AdminAccess, false):
			case consumableCapacity && result.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

func results(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}

// Owner is a claim that has a device, or a part of it.
type Owner struct {
	Claim *resourceapi.ResourceClaim
	// Request is what the device was allocated for, "request" or "request/alternative".
	Request string
	// Shared: others may have a part of the device too.
	Shared bool
	// AdminAccess: the device is still free for others.
	AdminAccess bool
}

// Owners are those who have devices, in the order of the claims' names.
func (s *State) Owners() map[structured.DeviceID][]Owner {
	owners := make(map[structured.DeviceID][]Owner)
	for _, claim := range s.Claims {
		for _, result := range results(claim) {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			owners[id] = append(owners[id], Owner{
				Claim:       claim,
				Request:     result.Request,
				Shared:      result.ShareID != nil,
				AdminAccess: ptr.Deref(result.AdminAccess, false),
			})
		}
	}
	return owners
}
