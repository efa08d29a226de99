// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// lookupAttribute finds an attribute by its fully qualified name: under that
// name, or under the name alone if the domain is that of the device's driver.
// nil means that the device does not have it.
func lookupAttribute(c *candidate, name resourceapi.FullyQualifiedName) *resourceapi.DeviceAttribute {
	if attribute, ok := c.device.Attributes[resourceapi.QualifiedName(name)]; ok {
		return &attribute
	}
	domain, id, qualified := strings.Cut(string(name), "/")
	if !qualified || domain != c.slice.Spec.Driver {
		return nil
	}
	if attribute, ok := c.device.Attributes[resourceapi.QualifiedName(id)]; ok {
		return &attribute
	}
	return nil
}

// scalar is the value of an attribute, comparable. The zero value is none: lists
// and types from the future.
type scalar struct {
	kind  scalarKind
	text  string
	whole int64
}

type scalarKind int8

const (
	noScalar scalarKind = iota
	stringScalar
	intScalar
	boolScalar
	versionScalar
)

// scalarOf compares versions as text: semantic versions have one spelling.
func scalarOf(attribute *resourceapi.DeviceAttribute) scalar {
	switch {
	case attribute.StringValue != nil:
		return scalar{kind: stringScalar, text: *attribute.StringValue}
	case attribute.IntValue != nil:
		return scalar{kind: intScalar, whole: *attribute.IntValue}
	case attribute.BoolValue != nil && *attribute.BoolValue:
		return scalar{kind: boolScalar, whole: 1}
	case attribute.BoolValue != nil:
		return scalar{kind: boolScalar}
	case attribute.VersionValue != nil:
		return scalar{kind: versionScalar, text: *attribute.VersionValue}
	default:
		return scalar{}
	}
}
