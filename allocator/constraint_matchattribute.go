// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
)

// matchAttribute wants all devices to have the attribute, with the same type and
// value.
type matchAttribute struct {
	name resourceapi.FullyQualifiedName
	// value is that of the first device, valid while devices > 0. It may be none: a
	// value of no known type is accepted as first and matched by nothing.
	value   scalar
	devices int
}

func (m *matchAttribute) add(c *candidate) (bool, error) {
	attribute := lookupAttribute(c, m.name)
	if attribute == nil {
		return false, nil
	}
	value := scalarOf(attribute)
	switch {
	case m.devices == 0:
		m.value = value
	case value.kind == noScalar || value != m.value:
		return false, nil
	}
	m.devices++
	return true, nil
}

func (m *matchAttribute) remove(*candidate) { m.devices-- }

func (m *matchAttribute) rejection(r *request, c *candidate) error { return attributeRejection(r, c) }
