// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package freesets counts the sets of devices on a node that other claims may ask for, and the number of sets that break when
// devices are taken.
//
// [Sets] holds the sets of one shape on an idle node. They are found once for each kind of hardware. [Free] holds the remaining
// sets of several shapes on one node. It is a stack of devices: giving back the last device restores the state before.
package freesets

import (
	"math"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// MaxSets is the maximum number of sets of one shape. It is enough for every shape on 16 devices.
const MaxSets = 1<<bitsOfShape - 1

// MaxShapes is the maximum number of shapes of a [Free].
const MaxShapes = 4

// bitsOfShape is the number of bits of a [Lost] for the sets of one shape.
const bitsOfShape = 14

// Lost holds the numbers of broken sets of several shapes, with the first shape in the highest bits. So comparing two values
// compares the first shape first, then the second, and so on.
type Lost int64

// Of returns the number of broken sets of a shape. shapes is the number of shapes.
func (l Lost) Of(shape, shapes int) int {
	return int(l >> (bitsOfShape * (shapes - 1 - shape)) & MaxSets)
}

// unit returns the value of one lost set.
func unit(shape, shapes int) Lost { return 1 << (bitsOfShape * (shapes - 1 - shape)) }

// Sets holds sets of devices by their positions. The zero value is empty.
type Sets struct {
	// positions holds the positions of all sets, one set after the other.
	positions []int32
	// ends holds, for each set, the index in positions where it ends.
	ends []int32
	// union holds the devices of all sets.
	union bitset.Set
	// All is true if these are all sets of the shape.
	All bool
}

// Add adds a set.
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

// Positions returns the positions of each set.
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

// Bytes returns the approximate memory of the sets.
func (s *Sets) Bytes() int {
	return int(unsafe.Sizeof(*s)) + 4*(cap(s.positions)+cap(s.ends)) + 8*len(s.union)
}

// Thin returns at most most sets, spread evenly over all sets.
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

// Meets reports whether one of the devices is in a set.
func (s *Sets) Meets(devices bitset.Set) bool { return s.union != nil && s.union.Meets(devices) }

// at returns the positions of a set.
func (s *Sets) at(i int) []int32 {
	from := int32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.positions[from:s.ends[i]]
}

// Free holds the sets of some shapes that are still whole.
type Free struct {
	shapes int
	// left is the number of initially whole sets of each shape.
	left [MaxShapes]int
	// setsByDevice holds, for each device, the sets that break when it is taken.
	setsByDevice [][]int32
	// taken holds, for each set, the number of taken devices that break it. units holds the loss of each set.
	taken []int32
	units []Lost
	loss  Lost
	// losses is a buffer for the losses of a domain.
	losses []Lost
}

// New returns the whole sets on a node, for at most [MaxShapes] shapes, the most important first. broken holds the unavailable
// devices. conflicts returns the devices that can't be allocated together with a device, and may be nil.
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

// addConflicts makes a device also break the sets of devices that it conflicts with.
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

// Take takes a device.
func (f *Free) Take(position int) {
	for _, set := range f.setsByDevice[position] {
		if f.taken[set]++; f.taken[set] == 1 {
			f.loss += f.units[set]
		}
	}
}

// GiveBack undoes the last Take, which must be for this device.
func (f *Free) GiveBack(position int) {
	for _, set := range f.setsByDevice[position] {
		if f.taken[set]--; f.taken[set] == 0 {
			f.loss -= f.units[set]
		}
	}
}

// Lost returns the loss by the taken devices. Taking more devices never reduces it.
func (f *Free) Lost() Lost { return f.loss }

// of returns the additional loss by a device.
func (f *Free) of(position int) Lost {
	loss := Lost(0)
	for _, set := range f.setsByDevice[position] {
		if f.taken[set] == 0 {
			loss += f.units[set]
		}
	}
	return loss
}

// AtLeast returns a lower bound of the additional loss by count devices of the domain: the count-th smallest loss of a single
// device. It returns the maximum if the domain has fewer devices.
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

// Before returns the number of initially whole sets of a shape.
func (f *Free) Before(shape int) int { return f.left[shape] }
