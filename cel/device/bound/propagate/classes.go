// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// If a predicate reads only columns of its two devices, devices with the same values have the same verdicts, so they form a
// class. For example, 5,000 nodes in 280 racks need only 280 different rows, each with 280 evaluated verdicts.

// Reads records that the current predicate reads the leaf of v. The receiver is nil if no predicate is being read.
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

// ReadsPair records that the current predicate compares the two devices themselves. The receiver is nil if no predicate is
// being read.
func (t *Tabulated) ReadsPair() {
	if t != nil {
		t.Pairwise = true
	}
}

// classesOf groups devices that have equal values in all columns. A device with a value that has no key forms a class of its
// own. The result is nil if there are more than half as many classes as devices, or if CEL could not be called.
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

// classesAt returns the classes of the devices for one variable of the predicate, or nil if classes would not save work. The
// first call computes the classes. The caller must hold the mutex.
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
