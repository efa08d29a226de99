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

// Owner is a claim to which a device, or a part of a device, is allocated.
type Owner struct {
	Claim *resourceapi.ResourceClaim
	// Request is the request of the claim that got the device, as "request" or "request/alternative".
	Request string
	// Shared means that the claim has only a share of the device, so other claims may have shares, too.
	Shared bool
	// AdminAccess means that the claim has only admin access, so the device is still free for other claims.
	AdminAccess bool
}

// Owners returns the owners of each allocated device, sorted by claim.
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
