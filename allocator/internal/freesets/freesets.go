// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freesets counts what is left of a node for others: the sets of devices that somebody may ask
// for, and how many of them are broken when devices are taken.
//
// [Sets] are the sets of one shape when nothing is in use. They are found once for a kind of
// hardware. [Free] is what is left of the sets of several shapes on one node. It is a stack of
// devices: what was taken last is given back first, and then all is as it was before.
package freesets

import (
	"math"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// MaxSets is how many sets of one shape are counted. On 16 devices no shape has more.
const MaxSets = 1<<bitsOfShape - 1

// MaxShapes is how many shapes a [Free] has at most.
const MaxShapes = 4

// bitsOfShape are those of a [Lost] that count the sets of one shape.
const bitsOfShape = 14

// Lost is how many sets are broken, of the first shape in the highest bits. So of two losses the
// one is smaller with which fewer sets of the first shape are broken, and if these are as many
// fewer of the second, and so on.
type Lost int64

// Of is how many sets are broken of one of so many shapes.
func (l Lost) Of(shape, shapes int) int {
	return int(l >> (bitsOfShape * (shapes - 1 - shape)) & MaxSets)
}

// unit is one set that is lost.
func unit(shape, shapes int) Lost { return 1 << (bitsOfShape * (shapes - 1 - shape)) }

// Sets are sets of devices by their positions. The zero value has none.
type Sets struct {
	// each has the positions of all sets, one set after the other.
	each []int32
	// ends has the end of each set in it.
	ends []int32
	// union has the devices that are in a set.
	union bitset.Set
	// All: there are no others.
	All bool
}

// Add adds a set.
func (s *Sets) Add(positions []int, devices int) {
	if s.union == nil {
		s.union = bitset.New(devices)
	}
	for _, p := range positions {
		s.each = append(s.each, int32(p))
		s.union.Add(p)
	}
	s.ends = append(s.ends, int32(len(s.each)))
}

// Len is how many sets there are.
func (s *Sets) Len() int { return len(s.ends) }

// Positions are those of each set.
func (s *Sets) Positions() [][]int {
	positions, each := make([][]int, s.Len()), make([]int, len(s.each))
	for i, position := range s.each {
		each[i] = int(position)
	}
	from := int32(0)
	for i, end := range s.ends {
		positions[i] = each[from:end:end]
		from = end
	}
	return positions
}

// Bytes is about how much memory they take.
func (s *Sets) Bytes() int {
	return int(unsafe.Sizeof(*s)) + 4*(cap(s.each)+cap(s.ends)) + 8*len(s.union)
}

// Thin keeps one of some sets, so that at most so many are left, spread evenly over all of them.
func (s *Sets) Thin(most int) *Sets {
	every := (s.Len() + most - 1) / most
	if every <= 1 {
		return s
	}
	thinned := &Sets{union: s.union}
	for i := 0; i < s.Len(); i += every {
		thinned.each = append(thinned.each, s.at(i)...)
		thinned.ends = append(thinned.ends, int32(len(thinned.each)))
	}
	return thinned
}

// Meets reports whether one of the devices is in a set.
func (s *Sets) Meets(devices bitset.Set) bool { return s.union != nil && s.union.Meets(devices) }

// at are the positions of a set.
func (s *Sets) at(i int) []int32 {
	from := int32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.each[from:s.ends[i]]
}

// Free is what is left of the sets of some shapes.
type Free struct {
	shapes int
	// left is how many sets of each shape were whole in the beginning.
	left [MaxShapes]int
	// parts has for each device the sets that break when it is taken.
	parts [][]int32
	// taken has for each set how many devices were taken that break it, units what its loss is.
	taken []int32
	units []Lost
	loss  Lost
	// losses is memory for those of a domain.
	losses []Lost
}

// New is what is left on a node of the sets of shapes, at most [MaxShapes], the most important one first. broken
// are the devices that can't be had any more. conflicts are for each device those that can't be had
// beside it, nil if there are none.
func New(shapes []*Sets, devices int, broken bitset.Set, conflicts func(position int) bitset.Set) *Free {
	f := &Free{shapes: len(shapes), parts: make([][]int32, devices)}
	for shape, sets := range shapes {
		for i := range sets.Len() {
			set := sets.at(i)
			if isBroken(set, broken) {
				continue
			}
			f.left[shape]++
			for _, position := range set {
				f.parts[position] = append(f.parts[position], int32(len(f.taken)))
			}
			f.taken = append(f.taken, 0)
			f.units = append(f.units, unit(shape, len(shapes)))
		}
	}
	if conflicts != nil {
		f.addConflicts(conflicts)
	}
	return f
}

func isBroken(set []int32, broken bitset.Set) bool {
	for _, position := range set {
		if broken.Has(int(position)) {
			return true
		}
	}
	return false
}

// addConflicts has a device break the sets of those that can't be had beside it.
func (f *Free) addConflicts(conflicts func(position int) bitset.Set) {
	all := make([][]int32, len(f.parts))
	for position := range f.parts {
		all[position] = f.parts[position]
		excluded := conflicts(position)
		if excluded == nil {
			continue
		}
		seen := make(map[int32]bool, len(f.parts[position]))
		for _, set := range f.parts[position] {
			seen[set] = true
		}
		all[position] = append([]int32(nil), f.parts[position]...)
		for other := range excluded.All() {
			for _, set := range f.parts[other] {
				if !seen[set] {
					seen[set] = true
					all[position] = append(all[position], set)
				}
			}
		}
	}
	f.parts = all
}

// Take takes a device.
func (f *Free) Take(position int) {
	for _, set := range f.parts[position] {
		if f.taken[set]++; f.taken[set] == 1 {
			f.loss += f.units[set]
		}
	}
}

// GiveBack undoes the last Take, which was that of the device.
func (f *Free) GiveBack(position int) {
	for _, set := range f.parts[position] {
		if f.taken[set]--; f.taken[set] == 0 {
			f.loss -= f.units[set]
		}
	}
}

// Lost is what the devices break that were taken. Whatever else is taken, it does not become less.
func (f *Free) Lost() Lost { return f.loss }

// of is what a device breaks besides what is broken.
func (f *Free) of(position int) Lost {
	loss := Lost(0)
	for _, set := range f.parts[position] {
		if f.taken[set] == 0 {
			loss += f.units[set]
		}
	}
	return loss
}

// AtLeast is what so many more devices of the domain break at least, besides what is broken: together
// they break what the worst of them does. It is as much as there can be if there are not as many.
func (f *Free) AtLeast(count int, domain bitset.Set) Lost {
	if count == 0 {
		return 0
	}
	f.losses = f.losses[:0]
	for position := range domain.All() {
		f.losses = append(f.losses, f.of(position))
	}
	if len(f.losses) < count {
		return math.MaxInt64
	}
	slices.Sort(f.losses)
	return f.losses[count-1]
}

// Before is how many sets of a shape were whole in the beginning.
func (f *Free) Before(shape int) int { return f.left[shape] }
