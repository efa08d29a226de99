// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraint implements constraints on the devices of several requests that compare attributes: matchAttribute and
// distinctAttribute. These constraints refuse a device if no solution contains it together with the devices already taken. They
// also bound the number of devices in a list that can be taken together.
//
// A [Constraint] is a stack of devices: removing a device restores the state before it was added.
package constraint

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

// Constraint is a condition on the devices of one or more requests of a claim. The search adds only devices of requests that
// the constraint covers. It removes devices in reverse order, and each removal must restore the previous state.
type Constraint interface {
	// Add adds a device if some completion of the set may satisfy the constraint. If not, or after an error, the set is unchanged.
	Add(r *requests.Request, c *inventory.Candidate) (bool, error)
	// Remove undoes the last successful Add.
	Remove(c *inventory.Candidate)
	// Len returns the number of devices in the set.
	Len() int
}

// Bounding is a constraint that can exclude devices before they are added.
type Bounding interface {
	// Admits reports whether Add would now accept the device for a request without derived attributes.
	Admits(c *inventory.Candidate) bool
	// Most returns an upper bound of the number of the devices that can be added together. Admits must be true for each device.
	Most(devices []*inventory.Candidate) int
}

// Matching is a constraint that requires all devices to have a common value of an attribute.
type Matching interface {
	Bounding
	// AttributeName returns the name of the compared attribute.
	AttributeName() resourceapi.FullyQualifiedName
	// Values returns the values of the device's published attribute.
	Values(c *inventory.Candidate) sets.Set[attribute.Scalar]
	// IsUndecided reports whether the set is empty, so that any value is still possible.
	IsUndecided() bool
}

// Covers reports whether the constraint api covers the request.
func Covers(api *resourceapi.DeviceConstraint, r *requests.Request) bool {
	return len(api.Requests) == 0 || r.IsNamed(api.Requests)
}

// Lookup finds the attributes that constraints compare.
type Lookup interface {
	// Attribute returns the attribute of a device, or nil. Derived attributes of the request take precedence over published ones.
	Attribute(r *requests.Request, c *inventory.Candidate, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error)
}

// compared identifies the attribute that a constraint compares.
type compared struct {
	lookup Lookup
	name   resourceapi.FullyQualifiedName
}

// AttributeName implements [Matching].
func (c *compared) AttributeName() resourceapi.FullyQualifiedName { return c.name }

func (c *compared) find(r *requests.Request, of *inventory.Candidate) (*resourceapi.DeviceAttribute, error) {
	return c.lookup.Attribute(r, of, c.name)
}

// New returns the constraint at index in a claim, which compares an attribute. lists is true if attributes may be lists.
func New(claim *resourceapi.ResourceClaim, index int, lists bool, lookup Lookup) (Constraint, error) {
	api := &claim.Spec.Devices.Constraints[index]
	switch {
	case api.MatchAttribute != nil && lists:
		return &matchAttributeList{compared: compared{lookup, *api.MatchAttribute}}, nil
	case api.MatchAttribute != nil:
		return &matchAttribute{compared: compared{lookup, *api.MatchAttribute}}, nil
	case api.DistinctAttribute != nil && lists:
		return &distinctAttributeList{compared: compared{lookup, *api.DistinctAttribute}}, nil
	case api.DistinctAttribute != nil:
		return &distinctAttribute{compared: compared{lookup, *api.DistinctAttribute}}, nil
	default:
		return nil, fmt.Errorf("claim %s, constraint #%d: empty constraint (unsupported constraint type?)", klog.KObj(claim), index)
	}
}

// matchAttribute requires that all devices have the attribute with the same type and value.
type matchAttribute struct {
	compared
	// value is the value of the first device. It is valid if devices > 0. A value of an unknown type is accepted only for the
	// first device, and equals no other value.
	value   attribute.Scalar
	devices int
}

func (m *matchAttribute) Add(r *requests.Request, c *inventory.Candidate) (bool, error) {
	found, err := m.find(r, c)
	if found == nil || err != nil {
		return false, err
	}
	value := attribute.ScalarOf(found)
	switch {
	case m.devices == 0:
		m.value = value
	case value.IsNone() || value != m.value:
		return false, nil
	}
	m.devices++
	return true, nil
}

func (m *matchAttribute) Remove(*inventory.Candidate) { m.devices-- }

func (m *matchAttribute) Len() int { return m.devices }

// matchAttributeList is matchAttribute for attributes that may be lists: all devices must have a common element. A scalar
// counts as a list with one element.
type matchAttributeList struct {
	compared
	// common is a stack. Its entry n holds the elements that the first n devices have in common.
	common []sets.Set[attribute.Scalar]
}

func (m *matchAttributeList) Add(r *requests.Request, c *inventory.Candidate) (bool, error) {
	found, err := m.find(r, c)
	if found == nil || err != nil {
		return false, err
	}
	common := attribute.ValuesOf(found)
	if n := len(m.common); n > 0 {
		common = common.Intersection(m.common[n-1])
	}
	if common.Len() == 0 {
		return false, nil
	}
	m.common = append(m.common, common)
	return true, nil
}

func (m *matchAttributeList) Remove(*inventory.Candidate) { m.common = m.common[:len(m.common)-1] }

func (m *matchAttributeList) Len() int { return len(m.common) }

func (m *matchAttribute) IsUndecided() bool { return m.devices == 0 }

func (m *matchAttribute) Values(c *inventory.Candidate) sets.Set[attribute.Scalar] {
	found := attribute.Published(c, m.name)
	if found == nil {
		return nil
	}
	return sets.New(attribute.ScalarOf(found))
}

func (m *matchAttribute) Admits(c *inventory.Candidate) bool {
	values := m.Values(c)
	return values.Len() > 0 && (m.IsUndecided() || values.Has(m.value))
}

func (m *matchAttribute) Most(devices []*inventory.Candidate) int { return mostMatching(m, devices) }

func (m *matchAttributeList) IsUndecided() bool { return len(m.common) == 0 }

func (m *matchAttributeList) Values(c *inventory.Candidate) sets.Set[attribute.Scalar] {
	found := attribute.Published(c, m.name)
	if found == nil {
		return nil
	}
	return attribute.ValuesOf(found)
}

func (m *matchAttributeList) Admits(c *inventory.Candidate) bool {
	values := m.Values(c)
	if !m.IsUndecided() {
		values = values.Intersection(m.common[len(m.common)-1])
	}
	return values.Len() > 0
}

func (m *matchAttributeList) Most(devices []*inventory.Candidate) int {
	return mostMatching(m, devices)
}

// mostMatching returns the greatest number of devices with a common value.
func mostMatching(m Matching, devices []*inventory.Candidate) int {
	sizes := make(map[attribute.Scalar]int)
	most := 0
	for _, c := range devices {
		for value := range m.Values(c) {
			sizes[value]++
			most = max(most, sizes[value])
		}
	}
	return most
}

// distinctAttribute requires that all devices have the attribute, and that no two devices have the same type and value.
type distinctAttribute struct {
	compared
	values []attribute.Scalar
}

func (d *distinctAttribute) Add(r *requests.Request, c *inventory.Candidate) (bool, error) {
	found, err := d.find(r, c)
	if found == nil || err != nil {
		return false, err
	}
	value := attribute.ScalarOf(found)
	// A value of an unknown type can't be compared, so it is accepted only for the first device.
	if len(d.values) > 0 && value.IsNone() || slices.Contains(d.values, value) {
		return false, nil
	}
	d.values = append(d.values, value)
	return true, nil
}

func (d *distinctAttribute) Remove(*inventory.Candidate) { d.values = d.values[:len(d.values)-1] }

func (d *distinctAttribute) Len() int { return len(d.values) }

// distinctAttributeList is distinctAttribute for attributes that may be lists: no two devices may have a common element. A
// scalar counts as a list with one element.
type distinctAttributeList struct {
	compared
	values []sets.Set[attribute.Scalar]
}

func (d *distinctAttributeList) Add(r *requests.Request, c *inventory.Candidate) (bool, error) {
	found, err := d.find(r, c)
	if found == nil || err != nil {
		return false, err
	}
	values := attribute.ValuesOf(found)
	if values.Len() == 0 || slices.ContainsFunc(d.values, func(other sets.Set[attribute.Scalar]) bool { return other.HasAny(values.UnsortedList()...) }) {
		return false, nil
	}
	d.values = append(d.values, values)
	return true, nil
}

func (d *distinctAttributeList) Remove(*inventory.Candidate) { d.values = d.values[:len(d.values)-1] }

func (d *distinctAttributeList) Len() int { return len(d.values) }

func (d *distinctAttribute) Admits(c *inventory.Candidate) bool {
	found := attribute.Published(c, d.name)
	if found == nil {
		return false
	}
	value := attribute.ScalarOf(found)
	for _, known := range d.values {
		if value.IsNone() || value == known {
			return false
		}
	}
	return true
}

// Most returns the number of different values of the devices.
func (d *distinctAttribute) Most(devices []*inventory.Candidate) int {
	values := sets.New[attribute.Scalar]()
	for _, c := range devices {
		values.Insert(attribute.ScalarOf(attribute.Published(c, d.name)))
	}
	return values.Len()
}

func (d *distinctAttributeList) Admits(c *inventory.Candidate) bool {
	found := attribute.Published(c, d.name)
	if found == nil {
		return false
	}
	values := attribute.ValuesOf(found)
	for _, known := range d.values {
		if known.HasAny(values.UnsortedList()...) {
			return false
		}
	}
	return values.Len() > 0
}

// Most returns the number of different elements. A set can't have more devices, as no two devices may have a common element.
func (d *distinctAttributeList) Most(devices []*inventory.Candidate) int {
	values := sets.New[attribute.Scalar]()
	for _, c := range devices {
		values = values.Union(attribute.ValuesOf(attribute.Published(c, d.name)))
	}
	return values.Len()
}
