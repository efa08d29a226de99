// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// LookAlike tells whether two devices of one driver are the same to selectors that read some
// attributes. Quantities count as different if they are written differently.
func LookAlike(a, b *resourceapi.Device, reads func(resourceapi.QualifiedName) bool) bool {
	if len(a.Attributes) != len(b.Attributes) || len(a.Capacity) != len(b.Capacity) ||
		ptr.Deref(a.AllowMultipleAllocations, false) != ptr.Deref(b.AllowMultipleAllocations, false) {
		return false
	}
	for name, value := range a.Attributes {
		other, ok := b.Attributes[name]
		if !ok {
			return false
		}
		if !reads(name) {
			value, other = withoutValue(value), withoutValue(other)
		}
		if !isSameValue(&value, &other) {
			return false
		}
	}
	for name, capacity := range a.Capacity {
		if other, ok := b.Capacity[name]; !ok || capacity.Value != other.Value {
			return false
		}
	}
	return true
}

func isSameValue(a, b *resourceapi.DeviceAttribute) bool {
	return ptr.Equal(a.IntValue, b.IntValue) && ptr.Equal(a.BoolValue, b.BoolValue) &&
		ptr.Equal(a.StringValue, b.StringValue) && ptr.Equal(a.VersionValue, b.VersionValue) &&
		isSameList(a.IntValues, b.IntValues) && isSameList(a.BoolValues, b.BoolValues) &&
		isSameList(a.StringValues, b.StringValues) && isSameList(a.VersionValues, b.VersionValues)
}

// isSameList compares as upstream's evaluator does, to which an empty list is a value and nil
// is none.
func isSameList[T comparable](a, b []T) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}
