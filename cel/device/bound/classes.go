// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// A predicate that takes only columns from its two devices says the same of devices for which these
// are the same: of 5,000 nodes in 280 racks 280 rows are different, and in each of them 280 verdicts.

// reads notes that the predicate that is being read, if any, has a leaf.
func (t *tabulated) reads(v value) {
	switch {
	case t == nil || len(v.slots) == 0:
	case len(v.slots) > 1:
		t.pairwise = true
	default:
		for i, slot := range t.slots {
			if i < maxArity && slot == v.slots[0] && !slices.Contains(t.columns[i], v.leaf) {
				t.columns[i] = append(t.columns[i], v.leaf)
			}
		}
	}
}

func (t *tabulated) readsPair() {
	if t != nil {
		t.pairwise = true
	}
}

// classesOf sorts the devices by columns. A value that can't be compared is like no other. nil if too few are alike to
// be worth it, or CEL could not be asked.
func (s *state) classesOf(columns []*leaf) *classes {
	n := len(s.tables.devices)
	type place struct {
		class int32
		key   any
	}
	of, count := make([]int32, n), int32(1)
	for _, leaf := range columns {
		column := s.column(leaf)
		if column == nil {
			return nil
		}
		places := make(map[place]int32)
		count = 0
		for i := range of {
			at := place{of[i], column.entries[i].key}
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
func (t *predicateTable) classesAt(s *state, variable int) *classes {
	if t.pairwise || len(t.slots) < maxArity {
		return nil
	}
	if !t.classified[variable] {
		t.classes[variable] = s.classesOf(t.columns[variable])
		t.classified[variable] = s.err == nil
		if c := t.classes[variable]; c != nil {
			s.addToTables(4*len(c.of) + len(c.first)*(8+setSize(len(c.of))))
		}
	}
	return t.classes[variable]
}
