// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
)

// place is where a box may lie.
type place struct {
	// within are the devices in the place.
	within spot
	// edges are sets of which the box must have a device each, for it to reach from one
	// side of the place to the other.
	edges []spot
}

const (
	// maxPlaces limits the places that are looked at one by one, and maxPlaceBytes what they take.
	maxPlaces, maxPlaceBytes = 1 << 15, 8 << 20
	// MaxSides is how many coordinates are put into all orders.
	MaxSides = 4
)

// holds reports whether enough of all the devices that there are are in the place for the set to be completed in it.
func (p *place) holds(all bitset.Set, size int) bool {
	if p.within.countIn(all) < size {
		return false
	}
	for i := range p.edges {
		if p.edges[i].countIn(all) == 0 {
			return false
		}
	}
	return true
}

func (p *place) bytes() int {
	bytes := int(unsafe.Sizeof(*p)) + p.within.bytes()
	for i := range p.edges {
		bytes += p.edges[i].bytes()
	}
	return bytes
}

// newPlaces cuts places for a box, for each way to choose the sides. It is nil if they can't be listed.
func newPlaces(s *propagate.State, axes []Axis, sides [][]outcome.Limits, size int) []place {
	all := bitset.New(s.Universe())
	for i := range s.Universe() {
		all.Add(i)
	}
	result, bytes := []place{}, 0
	for _, side := range sides {
		drafts := []draft{{within: all}}
		for i, axis := range axes {
			var next []draft
			if !axis.cut(s, side[i], drafts, size, func(d draft) bool {
				if i < len(axes)-1 {
					next = append(next, d)
					return len(next)*(1+len(d.edges))*propagate.SetBytes(s.Universe()) <= maxPlaceBytes
				}
				result = append(result, d.place())
				bytes += result[len(result)-1].bytes()
				return len(result) <= maxPlaces && bytes <= maxPlaceBytes
			}) {
				return nil
			}
			drafts = next
		}
	}
	return result
}

// draft is a place that is cut to size.
type draft struct {
	within bitset.Set
	edges  []bitset.Set
}

func (d draft) place() place {
	p := place{within: newSpot(d.within)}
	for _, edge := range d.edges {
		p.edges = append(p.edges, newSpot(edge))
	}
	return p
}

// cut cuts places by one more side: for each number at which it may begin, what is not too far from it. A
// place must have room for the list. It is false if some distances can't be computed, or yield is.
func (a Axis) cut(s *propagate.State, side outcome.Limits, of []draft, size int, yield func(draft) bool) bool {
	c := s.Column(a.Leaf)
	seen := map[int64]bool{}
	for begin := range c.Ints.All() {
		from := c.Entries[begin].Number.Least
		if a.Circle > 0 {
			from = library.Around(from, a.Circle)
		}
		if seen[from] {
			continue
		}
		seen[from] = true
		within, near, far := bitset.New(len(c.Entries)), bitset.New(len(c.Entries)), bitset.New(len(c.Entries))
		for i := range c.Ints.All() {
			distance, ok := outcome.Subtract(c.Entries[i].Number.Least, from)
			switch {
			case a.Circle > 0:
				distance = library.Around(library.Around(c.Entries[i].Number.Least, a.Circle)-from, a.Circle)
			case !ok:
				return false
			}
			if distance < 0 || distance > side.Most {
				continue
			}
			within.Add(i)
			if distance == 0 {
				near.Add(i)
			}
			if distance >= side.Least {
				far.Add(i)
			}
		}
		for _, d := range of {
			if cut, ok := d.cut(size, within, near, far); ok && !yield(cut) {
				return false
			}
		}
	}
	return true
}

// cut is false if less is left than the list has, or nothing at an edge. An edge that all of the place is at is left out.
func (d draft) cut(size int, within bitset.Set, edges ...bitset.Set) (result draft, ok bool) {
	result.within = slices.Clone(d.within)
	result.within.Keep(within)
	count := result.within.Count()
	if count < size {
		return draft{}, false
	}
	for _, edge := range slices.Concat(d.edges, edges) {
		switch edge.CountAnd(result.within) {
		case 0:
			return draft{}, false
		case count:
		default:
			edge = slices.Clone(edge)
			edge.Keep(result.within)
			result.edges = append(result.edges, edge)
		}
	}
	return result, true
}

// Axis is one coordinate. It goes around if there are places on its circle.
type Axis struct {
	Leaf   *propagate.Leaf
	Circle int64
}
