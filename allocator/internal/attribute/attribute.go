// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribute has the values of device attributes in a form in which they can be
// compared: by type and value, one by one ([Scalar]) or as a set ([ValuesOf]).
package attribute

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

// Published finds an attribute under its fully qualified name, or under
// the name alone if the domain is that of the device's driver.
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

// Scalar is the value of an attribute, comparable. The zero value is none: lists
// and types from the future.
type Scalar struct {
	kind  kind
	text  string
	whole int64
}

// IsNone reports whether there is no value that can be compared.
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

// ScalarOf is the attribute as a scalar, none for lists and for types that are not known.
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

// ValuesOf is the attribute as a set: the elements of a list, or the one scalar.
// It is empty if there is none.
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
