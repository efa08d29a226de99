// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.36

// Package compat is built for Kubernetes 1.36, which has few of the fields that it is about.
package compat

import (
	"k8s.io/api/resource/v1"
	"k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodGroup is a group of pods that are scheduled together, with the fields that say how. The API of this version has it in a
// package that later ones don't have, and "go mod tidy" looks for the packages of all build tags.
type PodGroup struct {
	metav1.ObjectMeta
	Spec struct{ SchedulingConstraints *SchedulingConstraints }
}

// SchedulingConstraints are those of a group.
type SchedulingConstraints struct {
	Topology []struct{ Key string }
}

// DeviceTaintRule adds a taint to the devices that it selects.
type DeviceTaintRule = v1beta2.DeviceTaintRule

// DeviceTaintSelector is what a rule selects devices by.
type DeviceTaintSelector = v1beta2.DeviceTaintSelector

// DerivedAttribute is an attribute of devices that a request computes. No request of this version does.
type DerivedAttribute struct {
	Name       v1.FullyQualifiedName
	Expression string
}

// DerivedAttributes are those of a request: none.
func DerivedAttributes(*v1.ExactDeviceRequest) []DerivedAttribute { return nil }

// DerivedAttributesOf are those of one of the alternatives of a request: none.
func DerivedAttributesOf(*v1.DeviceSubRequest) []DerivedAttribute { return nil }

// SetDerivedAttributes replaces those of a request, which has none.
func SetDerivedAttributes(*v1.ExactDeviceRequest, []DerivedAttribute) {}

// CompatibilityGroups are the groups of devices that can use a counter set at the same time: none, so all can.
func CompatibilityGroups(*v1.DeviceCounterConsumption) []string { return nil }

// SkipsNodeOperations reports whether the kubelet leaves out calls of the driver for the devices of a slice: it never does.
func SkipsNodeOperations(*v1.ResourceSliceSpec) bool { return false }

// SkipNoNodeOperations has the kubelet make all calls of the driver, as it does.
func SkipNoNodeOperations(*v1.ResourceSliceSpec) {}

// CopySkippedNodeOperations has the kubelet leave out nothing.
func CopySkippedNodeOperations(*v1.DeviceRequestAllocationResult, *v1.ResourceSliceSpec) {}

// NodeAllocatable are the quantities that say how much of a node's resources a device takes. Some are nil.
func NodeAllocatable(device *v1.Device) []*resource.Quantity {
	var quantities []*resource.Quantity
	for _, r := range device.NodeAllocatableResourceMappings {
		quantities = append(quantities, r.AllocationMultiplier)
	}
	return quantities
}
