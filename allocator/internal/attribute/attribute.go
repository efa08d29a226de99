// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribute converts values of device attributes to comparable values of Go: to single values ([Scalar]) or to sets
// ([ValuesOf]). Two values are equal if type and value are equal.
package attribute

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

// Published returns the published attribute with the fully qualified name, or nil. In the domain of the device's driver, the
// device may publish the name without the domain.
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

// Scalar is a comparable value of an attribute. Lists and unknown types have the zero value.
type Scalar struct {
	kind  kind
	text  string
	whole int64
}

// IsNone reports whether the value is the zero value, because the attribute is a list or has an unknown type.
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

// versionValue returns the value of a version. Comparing texts is sufficient, because a semantic version has only one spelling.
func versionValue(s string) Scalar { return Scalar{kind: versionKind, text: s} }

func boolValue(b bool) Scalar {
	if b {
		return Scalar{kind: boolKind, whole: 1}
	}
	return Scalar{kind: boolKind}
}

// ScalarOf returns the value of an attribute, or the zero value for a list or an unknown type.
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

// ValuesOf returns the elements of a list, or the value of a scalar. It returns an empty set if the type is unknown.
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
