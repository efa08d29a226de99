// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// Mapped is the list of values list.map(x, value).
type Mapped struct {
	List  DeviceList
	Slot  int
	Value propagate.Quantity
}

// of returns the value of a device, and whether the device is in the list that is mapped.
func (m Mapped) of(s *propagate.State, device int) (value outcome.Number, within outcome.Outcome) {
	if !s.Spend() {
		return outcome.OpenNumber, outcome.Open
	}
	within = m.List.membership(s, device)
	if !within.May(outcome.True) {
		return outcome.Never, within
	}
	before := s.Slots[m.Slot]
	s.Slots[m.Slot] = device
	value = m.Value.Number(s)
	s.Slots[m.Slot] = before
	return value, within
}

// Column returns the leaf that computes the values. It returns false unless the list has all devices of the set.
func (m Mapped) Column() (l *propagate.Leaf, ok bool) {
	if _, all := m.List.(AllDevices); !all {
		return nil, false
	}
	return m.LeafOf()
}

// LeafOf returns the leaf that computes the values, for any list. It returns false if the values are not a leaf.
func (m Mapped) LeafOf() (*propagate.Leaf, bool) {
	v, tabulated := m.Value.(propagate.Value)
	if !tabulated || !v.IsColumn(m.Slot) {
		return nil, false
	}
	return v.Leaf, true
}

// CountedBy recognizes values of the form devices.filter(o, predicate).size(), and returns the predicate on x and o.
func CountedBy(m Mapped) (*propagate.Predicate, bool) {
	number, ok := m.Value.(size)
	if _, all := m.List.(AllDevices); !ok || !all {
		return nil, false
	}
	p, _, ok := predicateOver(number.list, 0, nil)
	return p, ok
}
