// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/tree"
)

// block is list.box(d, [x(d), y(d)], sides), with sides in any order, and coordinates that may go
// around. As for a [box], the places where it may lie are listed once; a set can be completed in a place
// if enough devices are left there.
type block struct {
	list deviceList
	// leaves are the coordinates.
	leaves         []*leaf
	sides, circles []int64
	// index is the place in Analysis.boxes.
	index int
}

// blockOf reads the function: the coordinates are written one by one, and the sides are constants.
func (a *analyzer) blockOf(args []ast.Expr, s scope) condition {
	value, list, over, ok := a.mapOf(args[0], s)
	if !ok || value.Kind() != ast.ListKind || len(value.AsList().OptionalIndices()) > 0 {
		return open{}
	}
	n := block{list: list, index: a.boxes}
	if n.sides, ok = ints(args[1]); !ok {
		return open{}
	}
	n.circles = make([]int64, len(n.sides))
	if len(args) == 3 {
		if n.circles, ok = ints(args[2]); !ok {
			return open{}
		}
	}
	for _, coordinate := range value.AsList().Elements() {
		free, single := references(coordinate, over.scope)
		if !single || len(free) != 1 || free[0] != over.variable {
			return open{}
		}
		n.leaves = append(n.leaves, a.newLeaf(coordinate, free))
	}
	if len(n.leaves) == 0 || len(n.leaves) > maxSides || len(n.leaves) != len(n.sides) || len(n.leaves) != len(n.circles) ||
		slices.Min(n.circles) < 0 || slices.Max(n.circles) > math.MaxInt32 {
		return open{}
	}
	a.boxes++
	return n
}

// maxSides is how many coordinates are put into all orders.
const maxSides = 4

// ints recognizes a list of constants, also as an element of a list that is written out.
func ints(list ast.Expr) (result []int64, ok bool) {
	if element, ok := elementAt(list); ok {
		return ints(element)
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

// elementAt recognizes [a, b, c][1].
func elementAt(expr ast.Expr) (ast.Expr, bool) {
	if !tree.IsCall(expr, operators.Index) {
		return nil, false
	}
	list, index := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	at, ok := tree.Literal[types.Int](index)
	if !ok || list.Kind() != ast.ListKind || len(list.AsList().OptionalIndices()) > 0 || at < 0 || int(at) >= list.AsList().Size() {
		return nil, false
	}
	return list.AsList().Elements()[at], true
}

// members are those of the list, to be given back, with the coordinates of all devices. It is false if
// the former are not known, or coordinates of one of them are no numbers.
func (n block) members(s *state) (members, []*column, bool) {
	m, ok := membersOf(s, n.list)
	if !ok {
		return m, nil, false
	}
	columns := make([]*column, len(n.leaves))
	for i, l := range n.leaves {
		c := s.column(l)
		if c == nil || !c.order.has(m.chosen) || !c.order.has(m.possible) {
			return m, nil, false
		}
		columns[i] = c
	}
	return m, columns, true
}

func (n block) bound(s *state) Outcome {
	m, columns, ok := n.members(s)
	defer m.giveBack(s)
	if !ok {
		return Open
	}
	return outcomesOf(n.find(s, m, columns))
}

func (n block) find(s *state, m members, columns []*column) matches {
	if m.most == 0 {
		at := make([][]int64, len(columns))
		for i, c := range columns {
			for device := range m.chosen.All() {
				at[i] = append(at[i], c.entries[device].number.least)
			}
		}
		if library.IsBox(at, n.sides, n.circles) {
			return surely
		}
		return none
	}
	reached := s.borrow(m.possible)
	defer s.giveBack(reached)
	if places := n.places(s, columns); places != nil && !m.within(s, places, reached) {
		return none
	}
	return some
}

func (n block) propagate(s *state) status {
	m, columns, ok := n.members(s)
	defer m.giveBack(s)
	if !ok {
		return noFix
	}
	if m.most == 0 {
		return statusOf(outcomesOf(n.find(s, m, columns)))
	}
	places := n.places(s, columns)
	if places == nil {
		return noFix
	}
	reached := s.borrow(m.possible)
	defer s.giveBack(reached)
	if !m.within(s, places, reached) {
		return failed
	}
	m.remove(s, reached)
	return noFix
}

// within finds what is in a place in which the list can be completed. It is false if there is none.
func (m members) within(s *state, places []place, reached bitset.Set) (possible bool) {
	all := s.borrow(m.chosen)
	defer s.giveBack(all)
	all.Join(m.possible)
	reached.Clear()
	size := m.chosen.Count() + m.fewest
	for i := range places {
		if p := &places[i]; p.holds(m.chosen, all, size) {
			reached.Join(p.within)
			possible = true
		}
	}
	// A list without devices has no box.
	return possible
}

// places are those where the box may lie, in all orders of the sides. nil if they are too many.
func (n block) places(s *state, columns []*column) []place {
	t := &s.tables.boxes[n.index]
	if known := t.Load(); known != nil {
		return *known
	}
	places := []place{}
	orders(n.sides, func(sides []int64) bool {
		of := []place{{within: allOf(len(s.tables.devices))}}
		for i, c := range columns {
			if of = stretches(c, sides[i], n.circles[i], of); len(of) > maxPlaces {
				break
			}
		}
		places = append(places, of...)
		return len(places) <= maxPlaces
	})
	if len(places) > maxPlaces {
		places = nil
	}
	if t.CompareAndSwap(nil, &places) {
		s.tables.grow(sizeOfPlaces(places, len(s.tables.devices)))
	}
	return places
}

// orders calls f with the numbers in each different order, until it is false.
func orders(numbers []int64, f func([]int64) bool) {
	rest := slices.Clone(numbers)
	slices.Sort(rest)
	order := make([]int64, 0, len(rest))
	var next func() bool
	next = func() bool {
		if len(order) == len(numbers) {
			return f(order)
		}
		for i, n := range rest {
			if i > 0 && rest[i-1] == n {
				continue
			}
			rest = slices.Delete(rest, i, i+1)
			order = append(order, n)
			more := next()
			order = order[:len(order)-1]
			rest = slices.Insert(rest, i, n)
			if !more {
				return false
			}
		}
		return true
	}
	next()
}

// stretches cuts places by a coordinate: for each number at which the side may begin, what is not too far
// from it.
func stretches(c *column, side, circle int64, of []place) []place {
	if side < 1 || circle > 0 && side > circle {
		return nil
	}
	at := map[int64]bitset.Set{}
	var begins []int64
	for device := range c.order.ints.All() {
		n := c.entries[device].number.least
		if circle > 0 {
			n = library.Around(n, circle)
		}
		if at[n] == nil {
			at[n] = bitset.New(len(c.entries))
			begins = append(begins, n)
		}
		at[n].Add(device)
	}
	slices.Sort(begins)
	result := []place{}
	for _, begin := range begins {
		end := saturated(begin, side-1)
		within := bitset.New(len(c.entries))
		for n, devices := range at {
			if n >= begin && n <= end || circle > 0 && n+circle <= end {
				within.Join(devices)
			}
		}
		if circle > 0 {
			end %= circle
		}
		if at[end] == nil || circle == 0 && end-begin != side-1 {
			continue
		}
		for _, p := range of {
			if cut := p.cut(within, at[begin], at[end]); !cut.within.IsEmpty() {
				result = append(result, cut)
			}
		}
		if len(result) > maxPlaces {
			break
		}
	}
	return result
}
