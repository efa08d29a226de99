// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// A predicate that takes only columns from its two devices says the same of devices for which these
// are the same: of 5,000 nodes in 280 racks 280 rows are different, and in each of them 280 verdicts.

// Reads notes that the predicate that is being read, if any, has a leaf.
func (t *Tabulated) Reads(v Value) {
	switch {
	case t == nil || len(v.Slots) == 0:
	case len(v.Slots) > 1:
		t.Pairwise = true
	default:
		for i, slot := range t.Slots {
			if i < MaxArity && slot == v.Slots[0] && !slices.Contains(t.columns[i], v.Leaf) {
				t.columns[i] = append(t.columns[i], v.Leaf)
			}
		}
	}
}

// ReadsPair notes that the predicate that is being read, if any, compares the two devices.
func (t *Tabulated) ReadsPair() {
	if t != nil {
		t.Pairwise = true
	}
}

// classesOf sorts the devices by columns. A value that can't be compared is like no other. nil if too few are alike to
// be worth it, or CEL could not be asked.
func (s *State) classesOf(columns []*Leaf) *classes {
	n := len(s.tables.devices)
	type place struct {
		class int32
		key   any
	}
	of, count := make([]int32, n), int32(1)
	for _, leaf := range columns {
		column := s.Column(leaf)
		if column == nil {
			return nil
		}
		places := make(map[place]int32)
		count = 0
		for i := range of {
			at := place{of[i], column.Entries[i].Key}
			class, known := places[at]
			if !known || at.key == nil {
				class = count
				count++
				places[at] = class
			}
			of[i] = class
		}
	}
	if int(count) > n/2 {
		return nil
	}
	c := &classes{of: of, first: make([]int, count), members: make([]bitset.Set, count)}
	for i, class := range of {
		if c.members[class] == nil {
			c.first[class], c.members[class] = i, bitset.New(n)
		}
		c.members[class].Add(i)
	}
	return c
}

// classesAt are those of the devices that one of the variables stands for, nil if there are none to speak of. They are
// made once, while the mutex is held.
func (t *predicateTable) classesAt(s *State, variable int) *classes {
	if t.Pairwise || len(t.Slots) < MaxArity {
		return nil
	}
	if !t.classified[variable] {
		t.classes[variable] = s.classesOf(t.columns[variable])
		t.classified[variable] = s.Err == nil
		if c := t.classes[variable]; c != nil {
			s.addToTables(4*len(c.of) + len(c.first)*(8+SetBytes(len(c.of))))
		}
	}
	return t.classes[variable]
}
