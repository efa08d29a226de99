// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// This file implements the global constraint nvalue: the number of different values in a list. A device has one value or a list
// of values.
//
//	devices.map(d, d.rack).distinct().size()
//	devices.map(d, d.rails).flatten().distinct().size()

// distinctSize is list.map(x, value).distinct().size().
type distinctSize struct {
	leaf *propagate.Leaf
	list DeviceList
}

// NewDistinctSize returns the quantity for the number of different values. The quantity is open unless the values are a leaf.
func NewDistinctSize(m Mapped) propagate.Quantity {
	leaf, ok := m.LeafOf()
	if !ok {
		return propagate.Open{}
	}
	return distinctSize{leaf, m.List}
}

// Number bounds the number of different values. It is open if values can't be compared or it is undecided whether a device is
// in the list.
func (n distinctSize) Number(s *propagate.State) outcome.Number {
	m, ok := membersOf(s, n.list)
	defer m.giveBack(s)
	c := s.Column(n.leaf)
	if !ok || c == nil || !m.chosen.IsWithin(c.Groups.Known) || !m.possible.IsWithin(c.Groups.Known) || !s.Spend() {
		return outcome.OpenNumber
	}
	chosen, rest := 0, m.fewest
	var others []int
	for _, with := range c.Groups.Members {
		possible := m.possible.CountAnd(with)
		switch {
		case with.Meets(m.chosen):
			chosen++
			rest -= possible
		case possible > 0:
			others = append(others, possible)
		}
	}
	// For the lower bound, further members repeat values of chosen devices first, and then have the most frequent values.
	slices.SortFunc(others, func(a, b int) int { return cmp.Compare(b, a) })
	least := chosen
	for _, count := range others {
		if rest <= 0 {
			break
		}
		least++
		rest -= count
	}
	return outcome.Number{Least: int64(least), Most: int64(chosen + min(m.most, len(others)))}
}

// Narrow implements [propagate.Uniform]: devices with equal values count equally.
func (n distinctSize) Narrow(s *propagate.State, device int, to bitset.Set) bool {
	c := s.Column(n.leaf)
	if c == nil || !narrowToList(s, n.list, device, to) {
		return false
	}
	if !c.Groups.Known.Has(device) {
		return false
	}
	for _, with := range c.Groups.Members {
		if with.Has(device) {
			to.Keep(with)
			break
		}
	}
	return true
}

// unionSize is list.map(x, values).flatten().distinct().size().
type unionSize struct {
	leaf *propagate.Leaf
	list DeviceList
}

// Number bounds the number of different values. It is open if values can't be compared or it is undecided whether a device is
// in the list.
func (n unionSize) Number(s *propagate.State) outcome.Number {
	m, ok := membersOf(s, n.list)
	defer m.giveBack(s)
	c := s.Column(n.leaf)
	if c == nil {
		return outcome.OpenNumber
	}
	groups := &c.Groups
	if c.Elements != nil {
		groups = c.Elements
	}
	if !ok || !m.chosen.IsWithin(groups.Known) || !m.possible.IsWithin(groups.Known) || !s.Spend() {
		return outcome.OpenNumber
	}
	// adds[i] is the number of values of possible device i that no chosen device has.
	adds := make([]int, s.Universe())
	chosen, others := 0, 0
	for _, with := range groups.Members {
		switch {
		case with.Meets(m.chosen):
			chosen++
		case with.Meets(m.possible):
			others++
			for i := range with.All() {
				adds[i]++
			}
		}
	}
	var joining []int
	for i := range m.possible.All() {
		joining = append(joining, adds[i])
	}
	slices.Sort(joining)
	least, most := chosen, chosen
	if m.fewest > 0 {
		// At least m.fewest devices join. Whichever they are, one of them adds at least this number of new values.
		least += joining[m.fewest-1]
	}
	for _, count := range joining[len(joining)-m.most:] {
		most += count
	}
	return outcome.Number{Least: int64(least), Most: int64(min(most, chosen+others))}
}

// NewUnionSize returns the size of list.map(x, values).flatten().distinct() for the values of a leaf.
func NewUnionSize(of *propagate.Leaf, list DeviceList) propagate.Quantity { return unionSize{of, list} }
