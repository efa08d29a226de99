// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/device/library"
)

// box is a global constraint on the bounding box of the devices in a list. It represents the function of package library, and
// distances between the greatest and the smallest number:
//
//	devices.box(d, [row(d), col(d)], [4, 2], [0, 8])
//	devices.map(d, row(d)).max() - devices.map(d, row(d)).min() == 3 && ...
//
// One side of the box alone removes few devices. All sides together leave few places for the box. For example, a box of 4x4 in
// a mesh of 8x8 has 25 places.
//
//  1. newBoxPositions lists the places once for all tabulated devices. It cuts the set of devices at one side after the other.
//  2. A place is reachable if it has all chosen devices of the list, and enough possible devices to complete the list. Each of
//     its edges must have a chosen or possible device (reach).
//  3. Propagate removes a device that is in no reachable place. If no place is reachable, the condition is false.
//
// Each call visits each place once. If there are too many places, the condition as written (general) is used.
type box struct {
	list DeviceList
	axes []Axis
	// sides lists alternatives. One of them must hold. An alternative has the allowed distance for each axis, in the order of
	// axes.
	sides [][]outcome.Limits
	// size is the minimum length of the list.
	size int
	// general is the condition as written. It replaces the box if a value is not a number. For the function of package library,
	// general is open: it allows every outcome.
	general propagate.Condition
	// Derivation stores the places, because they are computed only once.
	propagate.Derivation
}

// newSpan returns the condition that the greatest minus the smallest value of the whole set is within the limits. b is nil for
// a condition that only one search uses.
func (b *Builder) newSpan(l *propagate.Leaf, side outcome.Limits, general propagate.Condition) propagate.Condition {
	n := &box{list: AllDevices{}, axes: []Axis{{Leaf: l}}, sides: [][]outcome.Limits{{side}}, size: 1, general: general, Derivation: b.NewDerivation()}
	if b != nil {
		n.size = b.SetSize
	}
	return n
}

// joinBoxes returns one box for the conjunction of two boxes. It returns false if one of the conditions is not a box with one
// alternative of sides.
func (b *Builder) joinBoxes(left, right propagate.Condition) (*box, bool) {
	l, ok := left.(*box)
	r, both := right.(*box)
	if !ok || !both || len(l.sides) != 1 || len(r.sides) != 1 || propagate.IsOpen(l.general) || propagate.IsOpen(r.general) {
		return nil, false
	}
	return &box{
		list: l.list, axes: slices.Concat(l.axes, r.axes), sides: [][]outcome.Limits{slices.Concat(l.sides[0], r.sides[0])}, size: l.size,
		general: and{l.general, r.general}, Derivation: b.NewDerivation(),
	}, true
}

// NewBox returns the function Box of package library: the axes give the coordinates of the list's devices, and the devices fill
// a box with sides of these lengths, in any order.
func (b *Builder) NewBox(list DeviceList, axes []Axis, sides []int64) propagate.Condition {
	n := &box{list: list, axes: axes, size: 1, general: propagate.Open{}, Derivation: b.NewDerivation()}
	inOrders(sides, nil, func(order []int64) {
		var distances []outcome.Limits
		for _, side := range order {
			distances = append(distances, outcome.Limits{Least: outcome.Saturated(side, -1), Most: outcome.Saturated(side, -1)})
		}
		n.sides = append(n.sides, distances)
	})
	return n
}

// inOrders calls f once for each different order of the numbers. Each call gets first followed by the ordered numbers.
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

// spanOf recognizes list.map(x, value).max() - list.map(x, value).min() over the whole set, and returns the leaf of value.
func spanOf(a arithmetic) (l *propagate.Leaf, ok bool) {
	greater, isGreater := a.left.(greatest)
	smaller, isSmaller := a.right.(greatest)
	if a.operation.Name != outcome.Subtraction.Name || !isGreater || !isSmaller || greater.Negated || !smaller.Negated {
		return nil, false
	}
	of, ok := greater.Column()
	and, both := smaller.Column()
	return of, ok && both && of == and
}

func (n *box) Bound(s *propagate.State) outcome.Outcome {
	m, ok := n.members(s)
	defer giveBackMembers(s, n.list, m)
	switch {
	case !ok:
		return n.general.Bound(s)
	case m.most == 0:
		return n.complete(s, m.chosen)
	}
	reached := s.Borrow(m.possible)
	defer s.GiveBack(reached)
	switch places := n.positions(s); {
	case places != nil && !n.reach(s, m, places, reached):
		return outcome.False
	case propagate.IsOpen(n.general):
		return outcome.True | outcome.False
	default:
		return n.general.Bound(s)
	}
}

// Propagate removes the devices that are in no reachable place. A reachable place loses no device, so a second call would
// remove nothing.
func (n *box) Propagate(s *propagate.State) propagate.Status {
	m, ok := n.members(s)
	defer giveBackMembers(s, n.list, m)
	switch {
	case !ok:
		return s.Propagate(n.general)
	case m.most == 0:
		return propagate.StatusOf(n.complete(s, m.chosen))
	}
	places := n.positions(s)
	if places == nil {
		return s.Propagate(n.general)
	}
	reached := s.Borrow(m.possible)
	defer s.GiveBack(reached)
	if !n.reach(s, m, places, reached) {
		return propagate.Failed
	}
	if _, all := n.list.(AllDevices); all {
		s.Keep(reached)
	} else {
		m.remove(s, reached)
	}
	return propagate.Fix
}

// members returns the members of the list. It returns false if it is not decided whether a device is in the list, or if a
// coordinate of a device is not a number. The caller must call giveBackMembers when it no longer needs the members.
func (n *box) members(s *propagate.State) (m members, ok bool) {
	m, ok = listMembers(s, n.list)
	for i := range n.axes {
		c := s.Column(n.axes[i].Leaf)
		ok = ok && c != nil && m.chosen.IsWithin(c.Ints) && (m.most == 0 || m.possible.IsWithin(c.Ints))
	}
	return m, ok
}

// complete returns the outcome for the devices of a complete list.
func (n *box) complete(s *propagate.State, devices bitset.Set) outcome.Outcome {
	distances := make([]int64, 0, MaxSides)
	for _, axis := range n.axes {
		distance, ok := axis.distance(s, devices)
		if !ok {
			// An open general condition means that the box is the function of package library. The function is false for an
			// empty list, and for coordinates that are too far apart to count positions.
			if propagate.IsOpen(n.general) {
				return outcome.False
			}
			return n.general.Bound(s)
		}
		distances = append(distances, distance)
	}
	return outcome.Of(slices.ContainsFunc(n.sides, func(sides []outcome.Limits) bool {
		for i, distance := range distances {
			if sides[i].Verdict(distance, distance) != outcome.True {
				return false
			}
		}
		return true
	}))
}

// distance returns the distance between the smallest and the greatest number of the devices. On a circle it is the length of
// the shortest arc with all numbers. ok is false if there are no devices, or if the distance is too large for an upper limit.
func (a Axis) distance(s *propagate.State, devices bitset.Set) (distance int64, ok bool) {
	entries := s.Column(a.Leaf).Entries
	if a.Circle > 0 {
		var numbers []int64
		for i := range devices.All() {
			numbers = append(numbers, entries[i].Number.Least)
		}
		if len(numbers) == 0 {
			return 0, false
		}
		places, ok := library.Extent(numbers, a.Circle)
		return places - 1, ok
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range devices.All() {
		least, most = min(least, entries[i].Number.Least), max(most, entries[i].Number.Least)
	}
	distance, ok = outcome.Subtract(most, least)
	return distance, ok && least <= most && distance < outcome.Unlimited
}

// reach adds the devices of each reachable place to the set reached. It returns false if no place is reachable.
func (n *box) reach(s *propagate.State, m members, places []boxPosition, reached bitset.Set) (possible bool) {
	all := s.Borrow(m.chosen)
	defer s.GiveBack(all)
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

// positions returns the places of a box, or nil if there are too many places.
func (n *box) positions(s *propagate.State) []boxPosition {
	if known, ok := n.Derived(s).([]boxPosition); ok {
		return known
	}
	places, bytes := newBoxPositions(s, n.axes, n.sides, n.size), 0
	for i := range places {
		bytes += places[i].bytes()
	}
	n.Derive(s, places, bytes)
	return places
}
