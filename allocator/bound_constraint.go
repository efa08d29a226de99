// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

// boundingConstraint is a constraint that knows devices which it will not accept
// any more.
type boundingConstraint interface {
	// admits tells whether the device, which has no derived attributes, can be
	// added.
	admits(c *inventory.Candidate) bool
	// most returns how many of the devices, all of which are admitted, can be added
	// together at most.
	most(devices []*inventory.Candidate) int
}

// matchingConstraint is a constraint for devices with a value in common.
type matchingConstraint interface {
	boundingConstraint
	// attributeName is that of the attribute compared.
	attributeName() resourceapi.FullyQualifiedName
	// values are those of a device without derived attributes.
	values(c *inventory.Candidate) sets.Set[scalar]
	// isUndecided tells whether the value is still open: there is no device yet.
	isUndecided() bool
}

func (a *attributeConstraint) attributeName() resourceapi.FullyQualifiedName { return a.name }

func (m *matchAttribute) isUndecided() bool { return m.devices == 0 }

func (m *matchAttribute) values(c *inventory.Candidate) sets.Set[scalar] {
	attribute := publishedAttribute(c, m.name)
	if attribute == nil {
		return nil
	}
	return sets.New(scalarOf(attribute))
}

func (m *matchAttribute) admits(c *inventory.Candidate) bool {
	values := m.values(c)
	return values.Len() > 0 && (m.isUndecided() || values.Has(m.value))
}

func (m *matchAttribute) most(devices []*inventory.Candidate) int { return mostMatching(m, devices) }

func (m *matchAttributeList) isUndecided() bool { return len(m.common) == 0 }

func (m *matchAttributeList) values(c *inventory.Candidate) sets.Set[scalar] {
	attribute := publishedAttribute(c, m.name)
	if attribute == nil {
		return nil
	}
	return valuesOf(attribute)
}

func (m *matchAttributeList) admits(c *inventory.Candidate) bool {
	values := m.values(c)
	if !m.isUndecided() {
		values = values.Intersection(m.common[len(m.common)-1])
	}
	return values.Len() > 0
}

func (m *matchAttributeList) most(devices []*inventory.Candidate) int {
	return mostMatching(m, devices)
}

// mostMatching is the size of the largest group of devices with a value in common.
func mostMatching(m matchingConstraint, devices []*inventory.Candidate) int {
	sizes := make(map[scalar]int)
	most := 0
	for _, c := range devices {
		for value := range m.values(c) {
			sizes[value]++
			most = max(most, sizes[value])
		}
	}
	return most
}

func (d *distinctAttribute) admits(c *inventory.Candidate) bool {
	attribute := publishedAttribute(c, d.name)
	if attribute == nil {
		return false
	}
	value := scalarOf(attribute)
	for _, known := range d.values {
		if value.kind == noScalar || value == known {
			return false
		}
	}
	return true
}

// most is the number of different values.
func (d *distinctAttribute) most(devices []*inventory.Candidate) int {
	values := sets.New[scalar]()
	for _, c := range devices {
		values.Insert(scalarOf(publishedAttribute(c, d.name)))
	}
	return values.Len()
}

func (d *distinctAttributeList) admits(c *inventory.Candidate) bool {
	attribute := publishedAttribute(c, d.name)
	if attribute == nil {
		return false
	}
	values := valuesOf(attribute)
	for _, known := range d.values {
		if known.HasAny(values.UnsortedList()...) {
			return false
		}
	}
	return values.Len() > 0
}

// most is the number of different elements: each device needs one of its own.
func (d *distinctAttributeList) most(devices []*inventory.Candidate) int {
	values := sets.New[scalar]()
	for _, c := range devices {
		values = values.Union(valuesOf(publishedAttribute(c, d.name)))
	}
	return values.Len()
}
