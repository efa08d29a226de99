// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/inventory"
)

// Most devices of a node look the same to selectors: a class asks for a driver, a request
// for a model or so much memory. A device is put together for upstream's evaluator with all
// that it has, which takes longer than to see that it is like the last one in everything
// that the selectors read. What they said of that one, they say of this one.

// judgement is what the selectors of a group said of a device.
type judgement struct {
	*inventory.Candidate
	passes bool
	// reads tells which attributes of devices of that driver the selectors read.
	reads func(resourceapi.QualifiedName) bool
}

// judge tells whether the device passes the selectors.
func (s *search) judge(r *request, c *inventory.Candidate) (bool, error) {
	if err := s.cancelled(); err != nil {
		return false, err
	}
	last := &r.group.last
	if s.isLikeLast(r, c) {
		return last.passes, nil
	}
	passes, err := s.matchesSelectors(r, c)
	if err != nil {
		return false, err
	}
	if last.Candidate == nil || last.Pool.Driver != c.Pool.Driver {
		last.reads = nil
	}
	last.Candidate, last.passes = c, passes
	return passes, nil
}

// isLikeLast tells whether selectors can't tell the device from the last one of the group
// that they were evaluated for.
func (s *search) isLikeLast(r *request, c *inventory.Candidate) bool {
	last := &r.group.last
	if s.allocator.unbounded || last.Candidate == nil || last.Pool.Driver != c.Pool.Driver {
		return false
	}
	if last.SelectsNodes() || c.SelectsNodes() {
		// Which node it is matters as well.
		return false
	}
	if last.reads == nil {
		read := s.allocator.readBySelectors(r.class.Spec.Selectors).with(s.allocator.readBySelectors(r.spec.Selectors))
		last.reads = read.reader(c.Pool.Driver)
	}
	return lookAlike(last.Device, c.Device, last.reads)
}

// lookAlike tells whether two devices of one driver are the same to selectors that read some
// attributes. Quantities count as different if they are written differently.
func lookAlike(a, b *resourceapi.Device, reads func(resourceapi.QualifiedName) bool) bool {
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
