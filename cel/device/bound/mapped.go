// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/propagate"
)

import "github.com/celset/celset/cel/device/bound/outcome"

// mapped is list.map(x, value).
type mapped struct {
	list  deviceList
	slot  int
	value propagate.Quantity
}

// of returns what the device contributes, and whether it is in the list.
func (m mapped) of(s *propagate.State, device int) (value outcome.Number, within outcome.Outcome) {
	if !s.Spend() {
		return outcome.OpenNumber, outcome.Open
	}
	within = m.list.membership(s, device)
	if !within.May(outcome.True) {
		return outcome.Never, within
	}
	before := s.Slots[m.slot]
	s.Slots[m.slot] = device
	value = m.value.Number(s)
	s.Slots[m.slot] = before
	return value, within
}

// column is the leaf whose values for all devices of the set are in the list.
func (m mapped) column() (l *propagate.Leaf, ok bool) {
	if _, all := m.list.(allDevices); !all {
		return nil, false
	}
	return m.leafOf()
}

// leafOf is the leaf whose values for devices are in the list.
func (m mapped) leafOf() (*propagate.Leaf, bool) {
	v, tabulated := m.value.(propagate.Value)
	if !tabulated || !v.IsColumn(m.slot) {
		return nil, false
	}
	return v.Leaf, true
}

// countedBy recognizes, for each device of the set, the number of devices for which a predicate holds.
func countedBy(m mapped) (*propagate.Predicate, bool) {
	number, ok := m.value.(size)
	if _, all := m.list.(allDevices); !ok || !all {
		return nil, false
	}
	p, _, ok := predicateOver(number.list, 0, nil)
	return p, ok
}
