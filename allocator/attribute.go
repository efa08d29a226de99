// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/celset/celset/allocator/internal/inventory"
)

// attribute returns the attribute of the device that constraints compare, nil if
// the device does not have it. A derived attribute of the request takes the place
// of one that the device publishes.
func (s *search) attribute(r *request, c *inventory.Candidate, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error) {
	expression, derived := r.derived[name]
	if !derived {
		return publishedAttribute(c, name), nil
	}
	key := derivation{expression, c.Position}
	if known, found := s.derivations[key]; found {
		return known, nil
	}
	result, err := s.derive(expression, c)
	if err != nil {
		return nil, fmt.Errorf("claim %s, request %s: derived attribute %s: %w", r.claim.Name, r.name, name, err)
	}
	s.derivations[key] = result
	return result, nil
}

// derivation identifies the value of a derived attribute of a device, by whatever
// name and for whichever request.
type derivation struct {
	expression string
	position   int
}

func (s *search) derive(expression string, c *inventory.Candidate) (*resourceapi.DeviceAttribute, error) {
	if err := s.cancelled(); err != nil {
		return nil, err
	}
	compiled := s.allocator.selectors.GetOrCompileDerivedAttribute(expression)
	if compiled.Error != nil {
		return nil, fmt.Errorf("compile: %w", compiled.Error)
	}
	result, _, err := compiled.EvaluateDerivedAttribute(s.ctx, celDevice(c))
	if err != nil {
		return nil, fmt.Errorf("evaluate on device %s: %w", c.ID, s.selectorError(err))
	}
	return result, nil
}

// celDevice is the device as upstream's expressions over one device see it.
func celDevice(c *inventory.Candidate) dracel.Device {
	return dracel.Device{
		Driver:                   c.Slice.Spec.Driver,
		AllowMultipleAllocations: c.Device.AllowMultipleAllocations,
		Attributes:               c.Device.Attributes,
		Capacity:                 c.Device.Capacity,
	}
}

// publishedAttribute finds an attribute under its fully qualified name, or under
// the name alone if the domain is that of the device's driver.
func publishedAttribute(c *inventory.Candidate, name resourceapi.FullyQualifiedName) *resourceapi.DeviceAttribute {
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

func stringValue(s string) scalar { return scalar{kind: stringScalar, text: s} }
func intValue(i int64) scalar     { return scalar{kind: intScalar, whole: i} }

// versionValue compares versions as text: semantic versions have one spelling.
func versionValue(s string) scalar { return scalar{kind: versionScalar, text: s} }

func boolValue(b bool) scalar {
	if b {
		return scalar{kind: boolScalar, whole: 1}
	}
	return scalar{kind: boolScalar}
}

func scalarOf(attribute *resourceapi.DeviceAttribute) scalar {
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
		return scalar{}
	}
}

// valuesOf is the attribute as a set: the elements of a list, or the one scalar.
// It is empty if there is none.
func valuesOf(attribute *resourceapi.DeviceAttribute) sets.Set[scalar] {
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
	if value := scalarOf(attribute); value.kind != noScalar {
		return sets.New(value)
	}
	return nil
}

func setOf[T any](elements []T, value func(T) scalar) sets.Set[scalar] {
	result := make(sets.Set[scalar], len(elements))
	for _, element := range elements {
		result.Insert(value(element))
	}
	return result
}
