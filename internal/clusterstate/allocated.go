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

// Owner is a claim that a device, or a part of it, is allocated to.
type Owner struct {
	Claim *resourceapi.ResourceClaim
	// Request is the request that the device was allocated for, "request" or "request/alternative".
	Request string
	// Shared is set if the claim has a share of the device, so that other claims may have shares too.
	Shared bool
	// AdminAccess is set if the claim has admin access, so that the device is still free for other claims.
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
