// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request is the name of the request in a Claim.
const request = "one"

// Claim is a claim that no scheduler allocates, to ask the guard about.
func Claim(name string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: request, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "none"}}}
	return claim
}

// Allocation gives it the only device of a driver, which need not publish any.
func Allocation(driver string) *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: request, Driver: driver, Pool: "pool", Device: "device"}},
	}}
}
