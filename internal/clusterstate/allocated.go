// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

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
