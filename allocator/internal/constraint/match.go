// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

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
