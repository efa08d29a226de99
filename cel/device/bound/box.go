// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// This file implements box, a condition on the bounding box of the devices in a list: the function of
// package library, and distances between the greatest and the smallest number.
//
//	devices.box(d, [row(d), col(d)], [4, 2], [0, 8])
//	devices.map(d, row(d)).max() - devices.map(d, row(d)).min() == 3 && ...
//
// Each side alone removes little: of four rows of eight half the columns are out of reach. Together the
// sides leave a few places for the box, 25 for one of 4x4 in a mesh of 8x8, and a set can be completed in
// a place if enough devices are left there. What is in none of these places is removed.
type box struct {
	list deviceList
	axes []axis
	// sides are the distances that are right, one for each axis, in any of several ways.
	sides [][]limits
	// size is that of the list at least.
	size int
	// general is the condition as it is written, for leaves that are not always numbers; open for the
	// function.
	general condition
	// index is the place in Tables.boxes, which has the places. own has them if the condition belongs to one
	// search.
	index int
	own   *atomic.Pointer[[]place]
}

// axis is one coordinate. It goes around if there are places on its circle.
type axis struct {
	leaf   *leaf
	circle int64
}

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
	// maxSides is how many coordinates are put into all orders.
	maxSides = 4
)

// newSpan is a condition on one distance over the whole set. Without an analyzer it belongs to one search.
func (a *analyzer) newSpan(l *leaf, side limits, general condition) condition {
	n := &box{list: allDevices{}, axes: []axis{{leaf: l}}, sides: [][]limits{{side}}, size: 1, general: general}
	if a == nil {
		n.own = &atomic.Pointer[[]place]{}
		return n
	}
	n.size, n.index = a.setSize, a.boxes
	a.boxes++
	return n
}

// joinBoxes makes one box of two that must both be there. It is false for anything else.
func (a *analyzer) joinBoxes(left, right condition) (*box, bool) {
	l, ok := left.(*box)
	r, both := right.(*box)
	if !ok || !both || len(l.sides) != 1 || len(r.sides) != 1 || isOpen(l.general) || isOpen(r.general) {
		return nil, false
	}
	a.boxes++
	return &box{
		list: l.list, axes: slices.Concat(l.axes, r.axes), sides: [][]limits{slices.Concat(l.sides[0], r.sides[0])}, size: l.size,
		general: and{l.general, r.general}, index: a.boxes - 1,
	}, true
}

// spanOf recognizes list.map(x, value).max() - list.map(x, value).min() over the
// whole set.
func spanOf(a arithmetic) (l *leaf, ok bool) {
	greater, isGreater := a.left.(greatest)
	smaller, isSmaller := a.right.(greatest)
	if a.operation.name != subtraction.name || !isGreater || !isSmaller || greater.negated || !smaller.negated {
		return nil, false
	}
	of, ok := greater.column()
	and, both := smaller.column()
	return of, ok && both && of == and
}

// boxFunction reads the function: the coordinates are written one by one, and the sides are constants.
func (a *analyzer) boxFunction(args []ast.Expr, s scope) condition {
	value, list, over, ok := a.mapOf(args[0], s)
	sides, constant := ints(args[1])
	if !ok || !constant || value.Kind() != ast.ListKind || len(value.AsList().OptionalIndices()) > 0 {
		return open{}
	}
	circles := make([]int64, len(sides))
	if len(args) == 3 {
		if circles, ok = ints(args[2]); !ok {
			return open{}
		}
	}
	coordinates := value.AsList().Elements()
	if len(sides) == 0 || len(sides) > maxSides || len(coordinates) != len(sides) || len(circles) != len(sides) ||
		slices.Min(circles) < 0 || slices.Max(circles) > math.MaxInt32 {
		return open{}
	}
	n := &box{list: list, size: 1, general: open{}, index: a.boxes}
	for i, coordinate := range coordinates {
		free, single := references(coordinate, over.scope)
		if !single || len(free) != 1 || free[0] != over.variable {
			return open{}
		}
		n.axes = append(n.axes, axis{a.newLeaf(coordinate, free), circles[i]})
	}
	inOrders(sides, nil, func(order []int64) {
		var distances []limits
		for _, side := range order {
			distances = append(distances, limits{saturated(side, -1), saturated(side, -1)})
		}
		n.sides = append(n.sides, distances)
	})
	a.boxes++
	return n
}

// inOrders calls f with the numbers, behind those that stand first, in each different order.
func inOrders(numbers, first []int64, f func([]int64)) {
	if len(numbers) == 0 {
		f(first)
	}
	for i, n := range numbers {
		if !slices.Contains(numbers[:i], n) {
			inOrders(slices.Delete(slices.Clone(numbers), i, i+1), append(slices.Clone(first), n), f)
		}
	}
}

// ints recognizes a list of constants, also as an element of a list that is written out: [[1, 2], [3]][0].
func ints(list ast.Expr) (result []int64, ok bool) {
	if tree.IsCall(list, operators.Index) {
		of, index := list.AsCall().Args()[0], list.AsCall().Args()[1]
		at, ok := tree.Literal[types.Int](index)
		if !ok || of.Kind() != ast.ListKind || len(of.AsList().OptionalIndices()) > 0 || at < 0 || int(at) >= of.AsList().Size() {
			return nil, false
		}
		return ints(of.AsList().Elements()[at])
	}
	if list.Kind() != ast.ListKind || len(list.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	for _, element := range list.AsList().Elements() {
		value, ok := tree.Literal[types.Int](element)
		if !ok {
			return nil, false
		}
		result = append(result, int64(value))
	}
	return result, true
}

func (n *box) bound(s *state) Outcome {
	m, ok := n.members(s)
	defer n.giveBack(s, m)
	switch {
	case !ok:
		return n.general.bound(s)
	case m.most == 0:
		return n.complete(s, m.chosen)
	}
	reached := s.borrow(m.possible)
	defer s.giveBack(reached)
	switch places := n.places(s); {
	case places != nil && !n.reach(s, m, places, reached):
		return False
	case isOpen(n.general):
		return True | False
	default:
		return n.general.bound(s)
	}
}

// propagate removes what is in no place in which the list can be completed. So nothing changes for the
// places in which it can.
func (n *box) propagate(s *state) status {
	m, ok := n.members(s)
	defer n.giveBack(s, m)
	switch {
	case !ok:
		return s.propagate(n.general)
	case m.most == 0:
		return statusOf(n.complete(s, m.chosen))
	}
	places := n.places(s)
	if places == nil {
		return s.propagate(n.general)
	}
	reached := s.borrow(m.possible)
	defer s.giveBack(reached)
	if !n.reach(s, m, places, reached) {
		return failed
	}
	if _, all := n.list.(allDevices); all {
		s.keep(reached)
	} else {
		m.remove(s, reached)
	}
	return fix
}

// members are those of the list, to be given back. It is false if they are not known, or coordinates of
// one of them are no numbers. Those of the whole set are not copied.
func (n *box) members(s *state) (m members, ok bool) {
	if _, all := n.list.(allDevices); all {
		left := min(max(0, s.Left), s.Domain.Count())
		m, ok = members{s.Chosen, s.Domain, left, left}, true
	} else {
		m, ok = membersOf(s, n.list)
	}
	for i := range n.axes {
		c := s.column(n.axes[i].leaf)
		ok = ok && c != nil && m.chosen.IsWithin(c.ints) && (m.most == 0 || m.possible.IsWithin(c.ints))
	}
	return m, ok
}

func (n *box) giveBack(s *state, m members) {
	if _, all := n.list.(allDevices); !all {
		m.giveBack(s)
	}
}

// complete is the outcome for devices to which none are added.
func (n *box) complete(s *state, devices bitset.Set) Outcome {
	distances := make([]int64, 0, maxSides)
	for _, axis := range n.axes {
		distance, ok := axis.distance(s, devices)
		if !ok {
			// The function is false where it can't count places, and a list without devices has no box.
			if isOpen(n.general) {
				return False
			}
			return n.general.bound(s)
		}
		distances = append(distances, distance)
	}
	return outcomeOf(slices.ContainsFunc(n.sides, func(sides []limits) bool {
		for i, distance := range distances {
			if sides[i].verdict(distance, distance) != True {
				return false
			}
		}
		return true
	}))
}

// distance of the smallest and the greatest number, or on a circle from one end to the other of the shortest
// arc with all of them. ok is false if there is none, or it is as large as an int64 can be: limits can't tell
// whether that is too much.
func (a axis) distance(s *state, devices bitset.Set) (distance int64, ok bool) {
	entries := s.column(a.leaf).entries
	if a.circle > 0 {
		var numbers []int64
		for i := range devices.All() {
			numbers = append(numbers, entries[i].number.least)
		}
		if len(numbers) == 0 {
			return 0, false
		}
		places, ok := library.Extent(numbers, a.circle)
		return places - 1, ok
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range devices.All() {
		least, most = min(least, entries[i].number.least), max(most, entries[i].number.least)
	}
	distance, ok = subtract(most, least)
	return distance, ok && least <= most && distance < unlimited
}

// reach finds what is in a place in which the list can be completed. It is false if there is none.
func (n *box) reach(s *state, m members, places []place, reached bitset.Set) (possible bool) {
	all := s.borrow(m.chosen)
	defer s.giveBack(all)
	all.Join(m.possible)
	reached.Clear()
	chosen := m.chosen.Count()
	for i := range places {
		if p := &places[i]; p.within.has(m.chosen, chosen) && p.holds(all, chosen+m.fewest) {
			p.within.joinTo(reached)
			possible = true
		}
	}
	return possible
}

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

// spot is a set of devices that is looked at often: few of many are listed, others are bits.
type spot struct {
	few  []int32
	bits bitset.Set
}

// fewBits is how many bits of a set a device in a list is worth. Tests lower it.
var fewBits = 32

func newSpot(devices bitset.Set) spot {
	count := devices.Count()
	if count*fewBits > 64*len(devices) {
		return spot{bits: devices}
	}
	s := spot{few: make([]int32, 0, count)}
	for i := range devices.All() {
		s.few = append(s.few, int32(i))
	}
	return s
}

func (s *spot) bytes() int {
	return int(unsafe.Sizeof(*s)) + 8*len(s.bits) + int(unsafe.Sizeof(int32(0)))*len(s.few)
}

// has reports whether all of the devices are in the spot, of which there are as many as count says.
func (s *spot) has(devices bitset.Set, count int) bool {
	if s.bits != nil {
		return devices.IsWithin(s.bits)
	}
	return s.countIn(devices) == count
}

// countIn is how many devices of the spot are among all.
func (s *spot) countIn(all bitset.Set) int {
	if s.bits != nil {
		return all.CountAnd(s.bits)
	}
	count := 0
	for _, i := range s.few {
		if all.Has(int(i)) {
			count++
		}
	}
	return count
}

func (s *spot) joinTo(other bitset.Set) {
	if s.bits != nil {
		other.Join(s.bits)
	}
	for _, i := range s.few {
		other.Add(int(i))
	}
}

// places returns the places for a box, nil if they can't be listed.
func (n *box) places(s *state) []place {
	t := n.own
	if t == nil {
		t = &s.tables.boxes[n.index]
	}
	if known := t.Load(); known != nil {
		return *known
	}
	places := n.newPlaces(s)
	// Two searches may both get here; what they find is the same.
	if t.CompareAndSwap(nil, &places) && n.own == nil {
		bytes := 0
		for i := range places {
			bytes += places[i].bytes()
		}
		s.tables.grow(bytes)
	}
	return places
}

func (p *place) bytes() int {
	bytes := int(unsafe.Sizeof(*p)) + p.within.bytes()
	for i := range p.edges {
		bytes += p.edges[i].bytes()
	}
	return bytes
}

func (n *box) newPlaces(s *state) []place {
	all := bitset.New(len(s.tables.devices))
	for i := range s.tables.devices {
		all.Add(i)
	}
	result, bytes := []place{}, 0
	for _, sides := range n.sides {
		drafts := []draft{{within: all}}
		for i, axis := range n.axes {
			var next []draft
			if !axis.cut(s, sides[i], drafts, n.size, func(d draft) bool {
				if i < len(n.axes)-1 {
					next = append(next, d)
					return len(next)*(1+len(d.edges))*setSize(len(s.tables.devices)) <= maxPlaceBytes
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
func (a axis) cut(s *state, side limits, of []draft, size int, yield func(draft) bool) bool {
	c := s.column(a.leaf)
	seen := map[int64]bool{}
	for begin := range c.ints.All() {
		from := c.entries[begin].number.least
		if a.circle > 0 {
			from = library.Around(from, a.circle)
		}
		if seen[from] {
			continue
		}
		seen[from] = true
		within, near, far := bitset.New(len(c.entries)), bitset.New(len(c.entries)), bitset.New(len(c.entries))
		for i := range c.ints.All() {
			distance, ok := subtract(c.entries[i].number.least, from)
			switch {
			case a.circle > 0:
				distance = library.Around(library.Around(c.entries[i].number.least, a.circle)-from, a.circle)
			case !ok:
				return false
			}
			if distance < 0 || distance > side.most {
				continue
			}
			within.Add(i)
			if distance == 0 {
				near.Add(i)
			}
			if distance >= side.least {
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
