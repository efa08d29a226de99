// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room counts what is left of a node for others: the sets of devices that somebody may ask
// for, and how many of them are broken when devices are taken.
//
// [Sets] are the sets of one shape when nothing is in use. They are found once for a kind of
// hardware. [Room] is what is left of the sets of several shapes on one node. It is a stack of
// devices: what was taken last is given back first, and then all is as it was before.
package room

import (
	"math"
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// MaxSets is how many sets of one shape are counted. On 16 devices no shape has more.
const MaxSets = 1<<bitsOfShape - 1

// MaxShapes is how many shapes a [Room] has at most.
const MaxShapes = 4

// bitsOfShape are those of a [Loss] that count the sets of one shape.
const bitsOfShape = 14

// Loss is how many sets are broken, of the first shape in the highest bits. So of two losses the
// one is smaller with which fewer sets of the first shape are broken, and if these are as many
// fewer of the second, and so on.
type Loss int64

// Of is how many sets are broken of one of so many shapes.
func (l Loss) Of(shape, shapes int) int {
	return int(l >> (bitsOfShape * (shapes - 1 - shape)) & MaxSets)
}

// unit is the loss of one set.
func unit(shape, shapes int) Loss { return 1 << (bitsOfShape * (shapes - 1 - shape)) }

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

// Meets tells whether one of the devices is in a set.
func (s *Sets) Meets(devices bitset.Set) bool { return s.union != nil && s.union.Meets(devices) }

// at are the positions of a set.
func (s *Sets) at(i int) []int32 {
	from := int32(0)
	if i > 0 {
		from = s.ends[i-1]
	}
	return s.each[from:s.ends[i]]
}

// Room is what is left of the sets of some shapes.
type Room struct {
	shapes int
	// left is how many sets of each shape were whole in the beginning.
	left [MaxShapes]int
	// parts has for each device the sets that break when it is taken.
	parts [][]int32
	// taken has for each set how many devices were taken that break it, units what its loss is.
	taken []int32
	units []Loss
	loss  Loss
	// losses is memory for those of a domain.
	losses []Loss
}

// New is the room on a node for shapes, at most [MaxShapes], the most important one first. broken
// are the devices that can't be had any more. conflicts are for each device those that can't be had
// beside it, nil if there are none.
func New(shapes []*Sets, devices int, broken bitset.Set, conflicts func(position int) bitset.Set) *Room {
	r := &Room{shapes: len(shapes), parts: make([][]int32, devices)}
	for shape, sets := range shapes {
		for i := range sets.Len() {
			set := sets.at(i)
			if isBroken(set, broken) {
				continue
			}
			r.left[shape]++
			for _, position := range set {
				r.parts[position] = append(r.parts[position], int32(len(r.taken)))
			}
			r.taken = append(r.taken, 0)
			r.units = append(r.units, unit(shape, len(shapes)))
		}
	}
	if conflicts != nil {
		r.addConflicts(conflicts)
	}
	return r
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
func (r *Room) addConflicts(conflicts func(position int) bitset.Set) {
	all := make([][]int32, len(r.parts))
	for position := range r.parts {
		all[position] = r.parts[position]
		excluded := conflicts(position)
		if excluded == nil {
			continue
		}
		seen := make(map[int32]bool, len(r.parts[position]))
		for _, set := range r.parts[position] {
			seen[set] = true
		}
		all[position] = append([]int32(nil), r.parts[position]...)
		for other := range excluded.All() {
			for _, set := range r.parts[other] {
				if !seen[set] {
					seen[set] = true
					all[position] = append(all[position], set)
				}
			}
		}
	}
	r.parts = all
}

// Take takes a device.
func (r *Room) Take(position int) {
	for _, set := range r.parts[position] {
		if r.taken[set]++; r.taken[set] == 1 {
			r.loss += r.units[set]
		}
	}
}

// GiveBack undoes the last Take, which was that of the device.
func (r *Room) GiveBack(position int) {
	for _, set := range r.parts[position] {
		if r.taken[set]--; r.taken[set] == 0 {
			r.loss -= r.units[set]
		}
	}
}

// Loss is what the devices break that were taken. Whatever else is taken, it does not become less.
func (r *Room) Loss() Loss { return r.loss }

// of is what a device breaks besides what is broken.
func (r *Room) of(position int) Loss {
	loss := Loss(0)
	for _, set := range r.parts[position] {
		if r.taken[set] == 0 {
			loss += r.units[set]
		}
	}
	return loss
}

// AtLeast is what so many more devices of the domain break at least, besides what is broken: together
// they break what the worst of them does. It is as much as there can be if there are not as many.
func (r *Room) AtLeast(count int, domain bitset.Set) Loss {
	if count == 0 {
		return 0
	}
	r.losses = r.losses[:0]
	for position := range domain.All() {
		r.losses = append(r.losses, r.of(position))
	}
	if len(r.losses) < count {
		return math.MaxInt64
	}
	slices.Sort(r.losses)
	return r.losses[count-1]
}

// Shapes is how many shapes there are.
func (r *Room) Shapes() int { return r.shapes }

// Before is how many sets of a shape were whole in the beginning.
func (r *Room) Before(shape int) int { return r.left[shape] }
