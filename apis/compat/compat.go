// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes1.36

// Package compat accesses the fields and types of the Kubernetes API that version 1.36 lacks. Through this package, the
// libraries build with version 1.36, too:
//
//	for _, attribute := range compat.DerivedAttributes(request) {
//
// With the build tag kubernetes1.36 the fields are always empty, because an API server of that version never sends them.
// Package [github.com/celset/celset/cel/compat] does the same for functions.
package compat

import (
	"k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodGroup is a group of pods that are scheduled together.
type PodGroup = schedulingapi.PodGroup

// DeviceTaintRule adds a taint to the devices that it selects.
type DeviceTaintRule = v1.DeviceTaintRule

// DeviceTaintSelector is the selector of devices in a rule.
type DeviceTaintSelector = v1.DeviceTaintSelector

// DerivedAttribute is an attribute of devices that a request computes.
type DerivedAttribute = v1.DeviceDerivedAttribute

// DerivedAttributes returns the derived attributes of a request.
func DerivedAttributes(request *v1.ExactDeviceRequest) []DerivedAttribute {
	return request.DerivedAttributes
}

// DerivedAttributesOf returns the derived attributes of one alternative of a request.
func DerivedAttributesOf(alternative *v1.DeviceSubRequest) []DerivedAttribute {
	return alternative.DerivedAttributes
}

// SetDerivedAttributes replaces the derived attributes of a request.
func SetDerivedAttributes(request *v1.ExactDeviceRequest, attributes []DerivedAttribute) {
	request.DerivedAttributes = attributes
}

// CompatibilityGroups returns the groups of devices that can use a counter set at the same time.
func CompatibilityGroups(consumption *v1.DeviceCounterConsumption) []string {
	return consumption.CompatibilityGroups
}

// SkipsNodeOperations reports whether the kubelet skips some calls of the driver for the devices of a slice.
func SkipsNodeOperations(slice *v1.ResourceSliceSpec) bool { return len(slice.SkipNodeOperations) > 0 }

// SkipNoNodeOperations changes a slice so that the kubelet calls the driver for all operations.
func SkipNoNodeOperations(slice *v1.ResourceSliceSpec) { slice.SkipNodeOperations = nil }

// CopySkippedNodeOperations copies the skipped operations of the slice to the allocated device.
func CopySkippedNodeOperations(to *v1.DeviceRequestAllocationResult, from *v1.ResourceSliceSpec) {
	to.SkipNodeOperations = from.SkipNodeOperations
}

// NodeAllocatable returns the quantities that say how much of a node's resources the device takes. Some quantities are nil.
func NodeAllocatable(device *v1.Device) []*resource.Quantity {
	var quantities []*resource.Quantity
	for _, r := range device.NodeAllocatableResources {
		if m := r.Mapping; m != nil {
			quantities = append(quantities, m.CapacityMultiplier, m.DeviceMultiplier)
		}
		if o := r.Overhead; o != nil {
			quantities = append(quantities, o.PerPod, o.PerContainer)
		}
	}
	return quantities
}
