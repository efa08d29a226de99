// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

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
