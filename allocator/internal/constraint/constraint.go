// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constraint has the conditions on the devices of several requests. It knows those that
// compare an attribute, matchAttribute and distinctAttribute: they refuse a device that can't be
// part of any solution with those already taken, and tell how many devices of a list they would
// accept together at most.
//
// A [Constraint] is a stack of devices: whatever is added and removed again, it is as before.
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

// Constraint is a condition on the devices of one or more requests of a claim.
// Only devices of covered requests are added. Devices are removed in the reverse
// order in which they were added, and after that the constraint is as it was
// before: the search relies on it.
type Constraint interface {
	// Add adds a device to the set if that may still lead to a set that satisfies
	// the constraint. If not, or after an error, the set is unchanged.
	Add(r *requests.Request, c *inventory.Candidate) (bool, error)
	// Remove undoes the last successful add.
	Remove(c *inventory.Candidate)
	// Len is the number of devices in it.
	Len() int
}

// Bounding is a constraint that knows devices which it will not accept
// any more.
type Bounding interface {
	// Admits reports whether the device, which has no derived attributes, can be
	// added: what Add would say now.
	Admits(c *inventory.Candidate) bool
	// Most returns how many of the devices, all of which are admitted, can be added
	// together at most, to those that are in it already.
	Most(devices []*inventory.Candidate) int
}

// Matching is a constraint for devices with a value in common.
type Matching interface {
	Bounding
	// AttributeName is that of the attribute compared.
	AttributeName() resourceapi.FullyQualifiedName
	// Values are those of a device without derived attributes.
	Values(c *inventory.Candidate) sets.Set[attribute.Scalar]
	// IsUndecided reports whether the value is still open: there is no device yet.
	IsUndecided() bool
}

// Covers reports whether the constraint is about devices of the request.
func Covers(api *resourceapi.DeviceConstraint, r *requests.Request) bool {
	return len(api.Requests) == 0 || r.IsNamed(api.Requests)
}

// Lookup finds attributes.
type Lookup interface {
	// Attribute is what a request sees of a device under a name, nil if there is nothing.
	Attribute(r *requests.Request, c *inventory.Candidate, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error)
}

// compared is the attribute that a constraint compares.
type compared struct {
	lookup Lookup
	name   resourceapi.FullyQualifiedName
}

// AttributeName is that of the attribute compared.
func (c *compared) AttributeName() resourceapi.FullyQualifiedName { return c.name }

func (c *compared) find(r *requests.Request, of *inventory.Candidate) (*resourceapi.DeviceAttribute, error) {
	return c.lookup.Attribute(r, of, c.name)
}

// New is a constraint of a claim that compares an attribute. lists: attributes may be lists.
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

// matchAttribute wants all devices to have the attribute, with the same type and
// value.
type matchAttribute struct {
	compared
	// value is that of the first device, valid while devices > 0. It may be none: a
	// value of no known type is accepted as first and matched by nothing.
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

// matchAttributeList is matchAttribute when attributes may be lists: all devices
// together must have an element in common. A scalar is a list of one.
type matchAttributeList struct {
	compared
	// common are the elements that the first n devices have in common, for each n. It
	// is a stack.
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

// mostMatching is the size of the largest group of devices with a value in common.
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

// distinctAttribute wants all devices to have the attribute, no two with the
// same type and value.
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
	// A value of no known type is accepted as first only: it can't be compared.
	if len(d.values) > 0 && value.IsNone() || slices.Contains(d.values, value) {
		return false, nil
	}
	d.values = append(d.values, value)
	return true, nil
}

func (d *distinctAttribute) Remove(*inventory.Candidate) { d.values = d.values[:len(d.values)-1] }

func (d *distinctAttribute) Len() int { return len(d.values) }

// distinctAttributeList is distinctAttribute when attributes may be lists: no two
// devices may have an element in common. A scalar is a list of one.
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

// Most is the number of different values.
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

// Most is the number of different elements: each device needs one of its own.
func (d *distinctAttributeList) Most(devices []*inventory.Candidate) int {
	values := sets.New[attribute.Scalar]()
	for _, c := range devices {
		values = values.Union(attribute.ValuesOf(attribute.Published(c, d.name)))
	}
	return values.Len()
}
