// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

// matchAttribute wants all devices to have the attribute, with the same type and
// value.
type matchAttribute struct {
	attributeConstraint
	// value is that of the first device, valid while devices > 0. It may be none: a
	// value of no known type is accepted as first and matched by nothing.
	value   scalar
	devices int
}

func (m *matchAttribute) add(r *request, c *inventory.Candidate) (bool, error) {
	attribute, err := m.lookup(r, c)
	if attribute == nil || err != nil {
		return false, err
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

func (m *matchAttribute) remove(*inventory.Candidate) { m.devices-- }

// matchAttributeList is matchAttribute when attributes may be lists: all devices
// together must have an element in common. A scalar is a list of one.
type matchAttributeList struct {
	attributeConstraint
	// common are the elements that the first n devices have in common, for each n. It
	// is a stack.
	common []sets.Set[scalar]
}

func (m *matchAttributeList) add(r *request, c *inventory.Candidate) (bool, error) {
	attribute, err := m.lookup(r, c)
	if attribute == nil || err != nil {
		return false, err
	}
	common := valuesOf(attribute)
	if n := len(m.common); n > 0 {
		common = common.Intersection(m.common[n-1])
	}
	if common.Len() == 0 {
		return false, nil
	}
	m.common = append(m.common, common)
	return true, nil
}

func (m *matchAttributeList) remove(*inventory.Candidate) { m.common = m.common[:len(m.common)-1] }

// attributeConstraint is what all constraints that compare an attribute share.
type attributeConstraint struct {
	search *search
	name   resourceapi.FullyQualifiedName
}

func (a *attributeConstraint) lookup(r *request, c *inventory.Candidate) (*resourceapi.DeviceAttribute, error) {
	return a.search.attribute(r, c, a.name)
}

// rejection: the devices are given and one of them does not match, so there is no
// solution, on any node where the devices are the same.
func (a *attributeConstraint) rejection(r *request, c *inventory.Candidate) error {
	return r.errorf("cannot add device %s because a claim constraint would not be satisfied", c.ID)
}
