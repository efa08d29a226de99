// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// distinctAttribute wants all devices to have the attribute, no two with the
// same type and value.
type distinctAttribute struct {
	name   resourceapi.FullyQualifiedName
	values []scalar
}

func (d *distinctAttribute) add(c *candidate) (bool, error) {
	attribute := lookupAttribute(c, d.name)
	if attribute == nil {
		return false, nil
	}
	value := scalarOf(attribute)
	// A value of no known type is accepted as first only: it can't be compared.
	if len(d.values) > 0 && value.kind == noScalar || slices.Contains(d.values, value) {
		return false, nil
	}
	d.values = append(d.values, value)
	return true, nil
}

func (d *distinctAttribute) remove(*candidate) { d.values = d.values[:len(d.values)-1] }

func (d *distinctAttribute) rejection(r *request, c *candidate) error {
	return attributeRejection(r, c)
}
