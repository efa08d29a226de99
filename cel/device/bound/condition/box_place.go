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

// A boxPosition is one possible place of a box in the space of the coordinates.
type boxPosition struct {
	// within has the devices with coordinates in the place.
	within deviceSet
	// Each set in edges has the devices at one edge of the place. The box needs at least one device of each set. Otherwise the
	// box would not extend from one side of the place to the other.
	edges []deviceSet
}

const (
	// maxPositions limits the number of places of one box. maxPositionBytes limits their memory.
	maxPositions, maxPositionBytes = 1 << 15, 8 << 20
	// MaxSides is the maximum number of sides of a box. It is small because each order of the sides is an alternative.
	MaxSides = 4
)

// holds reports whether at least size devices of all are in the place, and at least one device of all is at each edge.
func (p *boxPosition) holds(all bitset.Set, size int) bool {
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

func (p *boxPosition) bytes() int {
	bytes := int(unsafe.Sizeof(*p)) + p.within.bytes()
	for i := range p.edges {
		bytes += p.edges[i].bytes()
	}
	return bytes
}

// newBoxPositions returns the places of a box for all alternatives of sides, or nil if there are too many or a distance overflows.
func newBoxPositions(s *propagate.State, axes []Axis, sides [][]outcome.Limits, size int) []boxPosition {
	all := bitset.New(s.Universe())
	for i := range s.Universe() {
		all.Add(i)
	}
	result, bytes := []boxPosition{}, 0
	for _, side := range sides {
		drafts := []draft{{within: all}}
		for i, axis := range axes {
			var next []draft
			if !axis.cut(s, side[i], drafts, size, func(d draft) bool {
				if i < len(axes)-1 {
					next = append(next, d)
					return len(next)*(1+len(d.edges))*propagate.SetBytes(s.Universe()) <= maxPositionBytes
				}
				result = append(result, d.place())
				bytes += result[len(result)-1].bytes()
				return len(result) <= maxPositions && bytes <= maxPositionBytes
			}) {
				return nil
			}
			drafts = next
		}
	}
	return result
}

// A draft is a place that newBoxPositions has cut at the first axes, but not yet at the others.
type draft struct {
	within bitset.Set
	edges  []bitset.Set
}

func (d draft) place() boxPosition {
	p := boxPosition{within: newSpot(d.within)}
	for _, edge := range d.edges {
		p.edges = append(p.edges, newSpot(edge))
	}
	return p
}

// cut cuts each draft along one more axis, once for each coordinate at which the box may begin, and yields the results. It
// drops results with fewer than size devices. It returns false if a distance overflows or if yield returns false.
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

// cut restricts a draft to the devices in within and adds the edges. It returns false if fewer than size devices remain or an
// edge is empty. It omits an edge that has all devices of the draft, because such an edge excludes nothing.
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

// An Axis is one coordinate of the devices. If Circle is above zero, the coordinate runs on a circle with this number of
// positions.
type Axis struct {
	Leaf   *propagate.Leaf
	Circle int64
}
