// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
)

// box is a conjunction of conditions on distances ([span]): a bounding box with a side
// for each of them.
//
//	max(row) - min(row) == 3 && max(col) - min(col) == 3
//
// Each side alone removes little: of four rows of eight half the columns are out of
// reach. Together the sides leave a few places for the box, 25 for one of 4x4 in a mesh
// of 8x8, and a set can be completed in a place if enough devices are left there. What
// is in none of these places is removed.
type box struct {
	sides []span
	// index is the place in Analysis.boxes.
	index int
	size  int
}

// place is where a box may lie.
type place struct {
	// within are the devices in the place.
	within bitset.Set
	// edges are sets of which the box must have a device each, for it to reach from one
	// side of the place to the other.
	edges []bitset.Set
}

// maxPlaces limits the places that are looked at one by one.
const maxPlaces = 1 << 10

func (n box) bound(s *state) Outcome {
	result := True
	for _, side := range n.sides {
		result = result.and(side.bound(s))
	}
	return result
}

// propagate removes what is in no place in which the set can be completed. So nothing changes for the
// places in which it can.
func (n box) propagate(s *state) status {
	places := s.places(n)
	if places == nil || !n.hasNumbers(s) {
		return n.propagateSides(s)
	}
	all, reached := s.borrow(s.Chosen), s.borrow(s.Chosen)
	defer func() { s.giveBack(all); s.giveBack(reached) }()
	if s.Left > 0 {
		all.Join(s.Domain)
	}
	possible := false
	for i := range places {
		if p := &places[i]; p.holds(s.Chosen, all, n.size) {
			reached.Join(p.within)
			possible = true
		}
	}
	if s.Left > 0 {
		s.keep(reached)
	}
	if !possible {
		return failed
	}
	return fix
}

// holds tells whether the chosen devices are in the place, and enough of all that there
// are for the set to be completed in it.
func (p *place) holds(chosen, all bitset.Set, size int) bool {
	if !chosen.IsWithin(p.within) || all.CountAnd(p.within) < size {
		return false
	}
	for _, edge := range p.edges {
		if !all.Meets(edge) {
			return false
		}
	}
	return true
}

func (n box) propagateSides(s *state) status {
	for _, side := range n.sides {
		if side.propagate(s) == failed {
			return failed
		}
	}
	return noFix
}

// hasNumbers tells whether all sides are numbers for all devices.
func (n box) hasNumbers(s *state) bool {
	for _, side := range n.sides {
		if c := s.column(side.leaf); !c.order.has(s.Chosen) || !c.order.has(s.Domain) {
			return false
		}
	}
	return true
}

// places returns the places for a box, nil if they can't be listed.
func (s *state) places(n box) []place {
	t := &s.tables.boxes[n.index]
	if known := t.Load(); known != nil {
		return *known
	}
	places := []place{{within: allOf(len(s.tables.devices))}}
	for _, side := range n.sides {
		c := s.column(side.leaf)
		if c == nil {
			return nil
		}
		if places = side.places(&c.order, places, n.size); places == nil || len(places) > maxPlaces {
			places = nil
			break
		}
	}
	// Two searches may both get here; what they find is the same.
	if t.CompareAndSwap(nil, &places) {
		s.tables.grow(sizeOfPlaces(places, len(s.tables.devices)))
	}
	return places
}

// sizeOfPlaces is what places take.
func sizeOfPlaces(places []place, devices int) int {
	bytes := cap(places) * int(unsafe.Sizeof(place{}))
	for _, p := range places {
		bytes += (1 + cap(p.edges)) * setSize(devices)
	}
	return bytes
}

func allOf(n int) bitset.Set {
	all := bitset.New(n)
	for i := range n {
		all.Add(i)
	}
	return all
}

// places cuts places by one more side: for each number that may be the smallest one,
// what is not too far from it. A place must have room for the set. nil if some distances
// can't be computed.
func (n span) places(o *order, of []place, size int) []place {
	result := []place{}
	if !o.isBounded() {
		return nil
	}
	for i, least := range o.values {
		within := slices.Clone(o.upTo[len(o.upTo)-1])
		o.keepBetween(within, least, saturated(least, n.most))
		nearEdge, farEdge := slices.Clone(within), slices.Clone(within)
		nearEdge.Keep(o.upTo[i])
		o.keepBetween(farEdge, saturated(least, n.least), unlimited)
		for _, p := range of {
			if cut := p.cut(within, nearEdge, farEdge); cut.holds(nil, cut.within, size) {
				result = append(result, cut)
			}
		}
		if len(result) > maxPlaces {
			break
		}
	}
	return result
}

func (p place) cut(within bitset.Set, edges ...bitset.Set) place {
	result := place{within: slices.Clone(p.within)}
	result.within.Keep(within)
	for _, edge := range append(slices.Clone(p.edges), edges...) {
		edge = slices.Clone(edge)
		edge.Keep(result.within)
		result.edges = append(result.edges, edge)
	}
	return result
}

// newBox joins conditions of which each is a box or one side of a box.
func (a *analyzer) newBox(conditions ...condition) (b box, ok bool) {
	for _, c := range conditions {
		switch c := c.(type) {
		case span:
			b.sides = append(b.sides, c)
		case box:
			b.sides = append(b.sides, c.sides...)
		default:
			return box{}, false
		}
	}
	b.index, b.size = a.boxes, a.setSize
	a.boxes++
	return b, true
}

// joinBoxes makes one box of all conjuncts that are boxes.
func (a *analyzer) joinBoxes(conjuncts []condition) []condition {
	var boxes, others []condition
	for _, c := range conjuncts {
		switch c.(type) {
		case span, box:
			boxes = append(boxes, c)
		default:
			others = append(others, c)
		}
	}
	if len(boxes) == 0 {
		return conjuncts
	}
	joined, _ := a.newBox(boxes...)
	return append([]condition{joined}, others...)
}
