// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/fingerprint"
)

// Content returns the fingerprint of everything in a slice that expressions with the read set can read.
func Content(slice *resourceapi.ResourceSlice, read ReadSet) fingerprint.Sum {
	memory := fingerprint.Memory.Get().(*[]byte)
	defer fingerprint.Memory.Put(memory)
	writer := contentWriter{to: fingerprint.AppendPart((*memory)[:0], []byte(slice.Spec.Driver)), reads: read.Reader(slice.Spec.Driver)}
	for i := range slice.Spec.Devices {
		writer.device(&slice.Spec.Devices[i])
	}
	if writer.failed {
		// Use a text that is unique for the slice, so that it never equals other content.
		writer.to = fmt.Appendf(writer.to, "%s %s %s", slice.UID, slice.ResourceVersion, slice.Name)
	}
	*memory = writer.to
	return fingerprint.Of(writer.to)
}

// contentWriter encodes devices. Devices that expressions can distinguish have different encodings.
type contentWriter struct {
	to     []byte
	reads  func(resourceapi.QualifiedName) bool
	failed bool
	// attributes is a buffer for the attributes of a device, sorted by name.
	attributes []namedAttribute
}

type namedAttribute struct {
	name  resourceapi.QualifiedName
	value resourceapi.DeviceAttribute
}

func (w *contentWriter) device(d *resourceapi.Device) {
	w.to = fingerprint.AppendBool(fingerprint.AppendCapacities(w.to, d.Capacity), d.AllowMultipleAllocations)
	w.attributes = w.attributes[:0]
	for name, value := range d.Attributes {
		if !w.reads(name) {
			value = withoutValue(value)
		}
		w.attributes = append(w.attributes, namedAttribute{name, value})
	}
	slices.SortFunc(w.attributes, func(a, b namedAttribute) int { return strings.Compare(string(a.name), string(b.name)) })
	w.to = binary.BigEndian.AppendUint64(w.to, uint64(len(w.attributes)))
	for i := range w.attributes {
		w.to = fingerprint.AppendPart(w.to, []byte(w.attributes[i].name))
		w.to = append(w.to, emptyList(&w.attributes[i].value))
		w.message(&w.attributes[i].value)
	}
}

func (w *contentWriter) message(m fingerprint.Message) {
	var ok bool
	w.to, ok = fingerprint.AppendMessage(w.to, m)
	w.failed = w.failed || !ok
}

// emptyList returns the kind of an empty list, or 0 for other values. Expressions treat an empty list as a value, but the
// protocol buffer of the attribute omits it. No API server sends empty lists.
func emptyList(a *resourceapi.DeviceAttribute) byte {
	switch {
	case a.IntValues != nil && len(a.IntValues) == 0:
		return 1
	case a.BoolValues != nil && len(a.BoolValues) == 0:
		return 2
	case a.StringValues != nil && len(a.StringValues) == 0:
		return 3
	case a.VersionValues != nil && len(a.VersionValues) == 0:
		return 4
	}
	return 0
}

// HasEmptyList reports whether one of the attributes is an empty list.
func HasEmptyList(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) bool {
	for _, a := range attributes {
		if emptyList(&a) != 0 {
			return true
		}
	}
	return false
}

// withoutValue replaces the value of an attribute that is not read. It keeps the type, and keeps versions, because upstream's
// selectors fail for any device with an attribute of an unknown type or an invalid version.
func withoutValue(a resourceapi.DeviceAttribute) resourceapi.DeviceAttribute {
	switch {
	case a.IntValues != nil:
		a.IntValues = anyInts
	case a.BoolValues != nil:
		a.BoolValues = anyBools
	case a.StringValues != nil:
		a.StringValues = anyStrings
	case a.VersionValues != nil:
	case a.IntValue != nil:
		a.IntValue = &anyInts[0]
	case a.BoolValue != nil:
		a.BoolValue = &anyBools[0]
	case a.StringValue != nil:
		a.StringValue = &anyStrings[0]
	}
	return a
}

// These values replace the value of any attribute that is not read.
var anyInts, anyBools, anyStrings = []int64{0}, []bool{false}, []string{""}

// LookAlike reports whether selectors that read the given attributes can't distinguish two devices of one driver. Quantities
// that are spelled differently count as different.
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
		if !IsSameValue(&value, &other) {
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

// IsSameValue reports whether two attributes have the same value of the same type.
func IsSameValue(a, b *resourceapi.DeviceAttribute) bool {
	return ptr.Equal(a.IntValue, b.IntValue) && ptr.Equal(a.BoolValue, b.BoolValue) &&
		ptr.Equal(a.StringValue, b.StringValue) && ptr.Equal(a.VersionValue, b.VersionValue) &&
		isSameList(a.IntValues, b.IntValues) && isSameList(a.BoolValues, b.BoolValues) &&
		isSameList(a.StringValues, b.StringValues) && isSameList(a.VersionValues, b.VersionValues)
}

// isSameList compares lists as upstream's evaluator does: an empty list is a value, and nil is no value.
func isSameList[T comparable](a, b []T) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}
