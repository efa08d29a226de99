// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

// distinctAttribute wants all devices to have the attribute, no two with the
// same type and value.
type distinctAttribute struct {
	attributeConstraint
	values []scalar
}

func (d *distinctAttribute) add(r *request, c *inventory.Candidate) (bool, error) {
	attribute, err := d.lookup(r, c)
	if attribute == nil || err != nil {
		return false, err
	}
	value := scalarOf(attribute)
	// A value of no known type is accepted as first only: it can't be compared.
	if len(d.values) > 0 && value.kind == noScalar || slices.Contains(d.values, value) {
		return false, nil
	}
	d.values = append(d.values, value)
	return true, nil
}

func (d *distinctAttribute) remove(*inventory.Candidate) { d.values = d.values[:len(d.values)-1] }

// distinctAttributeList is distinctAttribute when attributes may be lists: no two
// devices may have an element in common. A scalar is a list of one.
type distinctAttributeList struct {
	attributeConstraint
	values []sets.Set[scalar]
}

func (d *distinctAttributeList) add(r *request, c *inventory.Candidate) (bool, error) {
	attribute, err := d.lookup(r, c)
	if attribute == nil || err != nil {
		return false, err
	}
	values := valuesOf(attribute)
	if values.Len() == 0 || slices.ContainsFunc(d.values, func(other sets.Set[scalar]) bool { return other.HasAny(values.UnsortedList()...) }) {
		return false, nil
	}
	d.values = append(d.values, values)
	return true, nil
}

func (d *distinctAttributeList) remove(*inventory.Candidate) { d.values = d.values[:len(d.values)-1] }
