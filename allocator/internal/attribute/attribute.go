// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribute makes values of device attributes comparable by type and value, as single values ([Scalar]) or as sets
// ([ValuesOf]).
package attribute

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

// Published returns the attribute with the fully qualified name, or with the name alone if its domain is the device's driver.
func Published(c *inventory.Candidate, name resourceapi.FullyQualifiedName) *resourceapi.DeviceAttribute {
	if attribute, ok := c.Device.Attributes[resourceapi.QualifiedName(name)]; ok {
		return &attribute
	}
	domain, id, qualified := strings.Cut(string(name), "/")
	if !qualified || domain != c.Slice.Spec.Driver {
		return nil
	}
	if attribute, ok := c.Device.Attributes[resourceapi.QualifiedName(id)]; ok {
		return &attribute
	}
	return nil
}

// Scalar is a comparable value of an attribute. The zero value represents lists and unknown types.
type Scalar struct {
	kind  kind
	text  string
	whole int64
}

// IsNone reports whether the attribute has no comparable value.
func (s Scalar) IsNone() bool { return s.kind == none }

type kind int8

const (
	none kind = iota
	stringKind
	intKind
	boolKind
	versionKind
)

func stringValue(s string) Scalar { return Scalar{kind: stringKind, text: s} }
func intValue(i int64) Scalar     { return Scalar{kind: intKind, whole: i} }

// versionValue compares versions as text: semantic versions have one spelling.
func versionValue(s string) Scalar { return Scalar{kind: versionKind, text: s} }

func boolValue(b bool) Scalar {
	if b {
		return Scalar{kind: boolKind, whole: 1}
	}
	return Scalar{kind: boolKind}
}

// ScalarOf returns the value of the attribute, or the zero value for lists and unknown types.
func ScalarOf(attribute *resourceapi.DeviceAttribute) Scalar {
	switch {
	case attribute.StringValue != nil:
		return stringValue(*attribute.StringValue)
	case attribute.IntValue != nil:
		return intValue(*attribute.IntValue)
	case attribute.BoolValue != nil:
		return boolValue(*attribute.BoolValue)
	case attribute.VersionValue != nil:
		return versionValue(*attribute.VersionValue)
	default:
		return Scalar{}
	}
}

// ValuesOf returns the elements of a list, or the single value. It is empty if the type is unknown.
func ValuesOf(attribute *resourceapi.DeviceAttribute) sets.Set[Scalar] {
	switch {
	case len(attribute.IntValues) > 0:
		return setOf(attribute.IntValues, intValue)
	case len(attribute.BoolValues) > 0:
		return setOf(attribute.BoolValues, boolValue)
	case len(attribute.StringValues) > 0:
		return setOf(attribute.StringValues, stringValue)
	case len(attribute.VersionValues) > 0:
		return setOf(attribute.VersionValues, versionValue)
	}
	if value := ScalarOf(attribute); !value.IsNone() {
		return sets.New(value)
	}
	return nil
}

func setOf[T any](elements []T, value func(T) Scalar) sets.Set[Scalar] {
	result := make(sets.Set[Scalar], len(elements))
	for _, element := range elements {
		result.Insert(value(element))
	}
	return result
}
