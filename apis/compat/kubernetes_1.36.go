// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.36

// Package compat is built for Kubernetes 1.36, whose API lacks most fields that this package accesses.
package compat

import (
	"k8s.io/api/resource/v1"
	"k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a group of pods that are scheduled together, with its scheduling constraints. It is defined here, because later
// versions removed the package with this type. An import of that package would fail in "go mod tidy", which resolves all build
// tags.
type PodGroup struct {
	metav1.ObjectMeta
	Spec struct{ SchedulingConstraints *SchedulingConstraints }
}

// SchedulingConstraints holds topology keys, such as celset.dev/torus for a node set constraint.
type SchedulingConstraints struct {
	Topology []struct{ Key string }
}

// DeviceTaintRule adds a taint to the devices that it selects.
type DeviceTaintRule = v1beta2.DeviceTaintRule

// DeviceTaintSelector is the selector of devices in a rule.
type DeviceTaintSelector = v1beta2.DeviceTaintSelector

// DerivedAttribute is an attribute of devices that a request computes. This version does not support derived attributes.
type DerivedAttribute struct {
	Name       v1.FullyQualifiedName
	Expression string
}

// DerivedAttributes returns the derived attributes of a request: none in this version.
func DerivedAttributes(*v1.ExactDeviceRequest) []DerivedAttribute { return nil }

// DerivedAttributesOf returns the derived attributes of one alternative of a request: none in this version.
func DerivedAttributesOf(*v1.DeviceSubRequest) []DerivedAttribute { return nil }

// SetDerivedAttributes does nothing, because requests of this version have no derived attributes.
func SetDerivedAttributes(*v1.ExactDeviceRequest, []DerivedAttribute) {}

// CompatibilityGroups returns nil, because in this version all devices can use a counter set at the same time.
func CompatibilityGroups(*v1.DeviceCounterConsumption) []string { return nil }

// SkipsNodeOperations returns false, because the kubelet of this version skips no calls of the driver.
func SkipsNodeOperations(*v1.ResourceSliceSpec) bool { return false }

// SkipNoNodeOperations does nothing, because the kubelet of this version always makes all calls of the driver.
func SkipNoNodeOperations(*v1.ResourceSliceSpec) {}

// CopySkippedNodeOperations does nothing, because the kubelet of this version skips no calls of the driver.
func CopySkippedNodeOperations(*v1.DeviceRequestAllocationResult, *v1.ResourceSliceSpec) {}

// NodeAllocatable returns the quantities that say how much of a node's resources the device takes. Some quantities are nil.
func NodeAllocatable(device *v1.Device) []*resource.Quantity {
	var quantities []*resource.Quantity
	for _, r := range device.NodeAllocatableResourceMappings {
		quantities = append(quantities, r.AllocationMultiplier)
	}
	return quantities
}
