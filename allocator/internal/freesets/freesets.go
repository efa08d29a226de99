// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freesets counts the sets of devices on a node that other claims may ask for, and how many of these sets break when
// devices are taken. A set breaks when one of its devices is taken.
//
// [Sets] holds the sets of one shape on an idle node. They are listed once for each kind of hardware. [Free] counts the
// unbroken sets of several shapes on one node. It is a stack: giving back the last device restores the previous state.
package freesets

import (
	"math"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// MaxSets is the maximum number of sets of one shape. It is enough for all sets of any shape on 16 devices.
const MaxSets = 1<<bitsOfShape - 1

// MaxShapes is the maximum number of shapes in a [Free].
const MaxShapes = 4

// bitsOfShape is the number of bits that a [Lost] has for each shape.
const bitsOfShape = 14

// Lost holds the number of broken sets for each of several shapes. The number for the first shape is in the highest bits. So
// comparing two values compares the numbers of the first shape, then of the second shape, and so on.
type Lost int64

// Of returns the number of broken sets of the shape with the given index. shapes is the number of shapes.
func (l Lost) Of(shape, shapes int) int {
	return int(l >> (bitsOfShape * (shapes - 1 - shape)) & MaxSets)
}

// unit returns the value of one broken set of the shape with the given index.
func unit(shape, shapes int) Lost { return 1 << (bitsOfShape * (shapes - 1 - shape)) }

// Sets holds sets of devices, as positions. The zero value contains no sets.
type Sets struct {
	// positions lists the positions of all sets, one set after the other.
	positions []int32
	// ends has an entry for each set: the index in positions after the last position of the set.
	ends []int32
	// union holds the devices that are in at least one set.
	union bitset.Set
	// All is true if Sets contains all sets of the shape.
	All bool
}

// Add adds a set. devices is the number of devices of the node.
func (s *Sets) Add(positions []int, devices int) {
	if s.union == nil {
		s.union = bitset.New(devices)
	}
	for _, p := range positions {
		s.positions = append(s.positions, int32(p))
		s.union.Add(p)
	}
	s.ends = append(s.ends, int32(len(s.positions)))
}

// Len returns the number of sets.
func (s *Sets) Len() int { return len(s.ends) }

// Positions returns the sets as slices of positions.
func (s *Sets) Positions() [][]int {
	positions, each := make([][]int, s.Len()), make([]int, len(s.positions))
	for i, position := range s.positions {
		each[i] = int(position)
	}
	from := int32(0)
	for i, end := range s.ends {
		positions[i] = each[from:end:end]
		from = end
	}
	return positions
}

// Bytes returns the approximate size of the sets in memory.
func (s *Sets) Bytes() int {
	return int(unsafe.Sizeof(*s)) + 4*(cap(s.positions)+cap(s.ends)) + 8*len(s.union)
}

// Thin returns at most most of the sets, spread evenly.
func (s *Sets) Thin(most int) *Sets {
	every := (s.Len() + most - 1) / most
	if every <= 1 {
		return s
	}
	thinned := &Sets{union: s.union}
	for i := 0; i < s.Len(); i += every {
		thinned.positions = append(thinned.positions, s.at(i)...)
		thinned.ends = append(thinned.ends, int32(len(thinned.positions)))
	}
	return thinned
}

// Meets reports whether one of the given devices is in a set.
func (s *Sets) Meets(devices bitset.Set) bool { return s.union != nil && s.union.Meets(devices) }

// at returns the positions of the set with index i.
func (s *Sets) at(i int) []int32 {
	from := int32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.positions[from:s.ends[i]]
}

// Free counts the unbroken sets of some shapes while devices are taken and given back.
type Free struct {
	shapes int
	// left is the number of unbroken sets of each shape before any device is taken.
	left [MaxShapes]int
	// setsByDevice has an entry for each device: the sets that break when the device is taken.
	setsByDevice [][]int32
	// taken has an entry for each set: the number of taken devices that break it. units holds the value in [Lost] of each set.
	taken []int32
	units []Lost
	loss  Lost
	// losses is a buffer that AtLeast fills with the loss of each device.
	losses []Lost
}

// New returns the unbroken sets on a node, for at most [MaxShapes] shapes, the most important first. broken holds the devices
// that are not available. conflicts returns the devices that can't be allocated together with a device. It may be nil.
func New(shapes []*Sets, devices int, broken bitset.Set, conflicts func(position int) bitset.Set) *Free {
	f := &Free{shapes: len(shapes), setsByDevice: make([][]int32, devices)}
	for shape, sets := range shapes {
		for i := range sets.Len() {
			set := sets.at(i)
			if isBroken(set, broken) {
				continue
			}
			f.left[shape]++
			for _, position := range set {
				f.setsByDevice[position] = append(f.setsByDevice[position], int32(len(f.taken)))
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

// addConflicts extends setsByDevice: a device also breaks the sets that contain a conflicting device.
func (f *Free) addConflicts(conflicts func(position int) bitset.Set) {
	all := make([][]int32, len(f.setsByDevice))
	for position := range f.setsByDevice {
		all[position] = f.setsByDevice[position]
		excluded := conflicts(position)
		if excluded == nil {
			continue
		}
		seen := make(map[int32]bool, len(f.setsByDevice[position]))
		for _, set := range f.setsByDevice[position] {
			seen[set] = true
		}
		all[position] = append([]int32(nil), f.setsByDevice[position]...)
		for other := range excluded.All() {
			for _, set := range f.setsByDevice[other] {
				if !seen[set] {
					seen[set] = true
					all[position] = append(all[position], set)
				}
			}
		}
	}
	f.setsByDevice = all
}

// Take marks a device as taken and updates the loss.
func (f *Free) Take(position int) {
	for _, set := range f.setsByDevice[position] {
		if f.taken[set]++; f.taken[set] == 1 {
			f.loss += f.units[set]
		}
	}
}

// GiveBack undoes the last Take, which must have been for the same device.
func (f *Free) GiveBack(position int) {
	for _, set := range f.setsByDevice[position] {
		if f.taken[set]--; f.taken[set] == 0 {
			f.loss -= f.units[set]
		}
	}
}

// Lost returns the number of sets that the taken devices break. Taking more devices never reduces it.
func (f *Free) Lost() Lost { return f.loss }

// of returns the additional loss if the device is taken.
func (f *Free) of(position int) Lost {
	loss := Lost(0)
	for _, set := range f.setsByDevice[position] {
		if f.taken[set] == 0 {
			loss += f.units[set]
		}
	}
	return loss
}

// AtLeast returns a lower bound of the additional loss if count devices of the domain are taken: the count-th smallest loss of
// a single device. If the domain has fewer devices, it returns the maximum of int64.
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

// Before returns the number of unbroken sets of a shape before any device is taken.
func (f *Free) Before(shape int) int { return f.left[shape] }
