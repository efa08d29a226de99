// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// segments is the function of package library as a global constraint: the number of devices with each value is a multiple of the
// size, except for one value if the size does not divide the number of devices in the list.
//
//	devices.segments(8, d, d.clique)
//	devices.filter(d, d.driver == 'gpu').segments(4, d, d.board)
//
// Some values have a bounded number of further devices, so whole segments are distributed to values:
//
//  1. The members of the list are counted by value (countMembers). To fill its last segment, a value misses up to size-1 devices.
//     After that, the other possible devices may form further segments.
//  2. The number of devices that join the list determines the size of the tail, the one smaller segment. The numbers of a filtered
//     list that lead to the same tail are considered together (distribute).
//  3. Without a tail, all values are filled. The remaining devices are a number of segments. If there are too many segments for
//     all values, or too few devices to fill the values, no completion exists.
//  4. With a tail, each value in turn is tried as the value of the tail. The tail needs another number of devices than a full
//     segment. So the number of segments to distribute differs by at most one, and so does the number of segments that fit.
//     This gives four kinds of tails, and each value is compared with the kinds of the other values (segmentTails).
//  5. For each value this yields the smallest and the greatest number of devices that join in some completion. If the greatest
//     number is zero, the devices of the value are removed. If the smallest number is the number of possible devices, the devices
//     are required (Propagate).
//
// Devices with the same value are interchangeable. So a removed device is in no completion that satisfies the constraint, and each
// device that remains is in such a completion. Each value is visited a constant number of times for each tail. The whole set has
// one tail.
type segments struct {
	list DeviceList
	leaf *propagate.Leaf
	size int64
	// Derivation stores the slice of values between calls.
	propagate.Derivation
}

// NewSegments returns the function Segments of package library, for values of a leaf. The size must be at least one.
func (b *Builder) NewSegments(list DeviceList, leaf *propagate.Leaf, size int64) propagate.Condition {
	// All sizes that exceed every number of devices have the same meaning.
	return &segments{list, leaf, min(size, math.MaxInt32), b.NewDerivation()}
}

// segmentValue counts the members of the list with one value.
type segmentValue struct {
	with bitset.Set
	// possible is the number of possible members.
	possible int64
	// missing is the number of devices that fill the last segment of the chosen members. further is the number of segments that
	// the other possible members can form. It is -1 if there are fewer possible members than missing.
	missing, further int64
	// joining has the numbers of possible members that join the list in a completion.
	joining span
}

// span is a range of numbers. It is empty if least exceeds most.
type span struct{ least, most int64 }

var noSpan = span{math.MaxInt64, math.MinInt64}

func (s span) isEmpty() bool { return s.least > s.most }

func (s *span) join(least, most int64) { s.least, s.most = min(s.least, least), max(s.most, most) }

// A segmentation has the values of the members, and sums over the values.
type segmentation struct {
	size   int64
	values []segmentValue
	// missing and further are the sums of the fields of the values. unfilled is the number of values that can't be filled.
	missing, further, unfilled int64
	// joining has the numbers of possible members that join the list in a completion.
	joining span
}

func (n *segments) Bound(s *propagate.State) outcome.Outcome {
	m, ok := listMembers(s, n.list)
	defer giveBackMembers(s, n.list, m)
	if !ok {
		return outcome.Open
	}
	return n.bound(s, m, nil)
}

// bound returns the outcome. If use is not nil, bound calls it for a condition that is neither true nor false.
func (n *segments) bound(s *propagate.State, m members, use func(*segmentation)) outcome.Outcome {
	g, ok := n.countMembers(s, m)
	switch {
	case !ok:
		return outcome.Open
	case !g.distribute(int64(m.fewest), int64(m.most)):
		return outcome.False
	case m.most == 0 || g.size == 1 || len(g.values) <= 1:
		return outcome.True
	case use != nil:
		use(g)
	}
	return outcome.True | outcome.False
}

// Propagate removes and requires devices. Both change no completion that satisfies the constraint, so the result is a fixpoint,
// unless the list is a filter: a required device may decide whether others are in the list.
func (n *segments) Propagate(s *propagate.State) propagate.Status {
	m, ok := listMembers(s, n.list)
	defer giveBackMembers(s, n.list, m)
	if !ok {
		return propagate.Fix
	}
	status := propagate.Fix
	if _, all := n.list.(AllDevices); !all {
		status = propagate.NoFix
	}
	if is := n.bound(s, m, func(g *segmentation) { g.propagate(s, m) }); is != outcome.True|outcome.False {
		return propagate.StatusOf(is)
	}
	return status
}

// countMembers counts the members by value. ok is false if the value of a member can't be compared.
func (n *segments) countMembers(s *propagate.State, m members) (g *segmentation, ok bool) {
	c := s.Column(n.leaf)
	if c == nil || !m.chosen.IsWithin(c.Groups.Known) || m.most > 0 && !m.possible.IsWithin(c.Groups.Known) {
		return nil, false
	}
	memory := n.Memory(s)
	if g, ok = (*memory).(*segmentation); !ok {
		g = &segmentation{}
		*memory = g
	}
	*g = segmentation{size: n.size, values: g.values[:0], joining: noSpan}
	for _, with := range c.Groups.Members {
		v := segmentValue{with: with, joining: noSpan}
		chosen := int64(with.CountAnd(m.chosen))
		if m.most > 0 {
			v.possible = int64(with.CountAnd(m.possible))
		}
		if chosen+v.possible == 0 {
			continue
		}
		v.missing = modulo(-chosen, n.size)
		v.further = outcome.FloorOf(v.possible-v.missing, n.size)
		g.values = append(g.values, v)
		g.missing += v.missing
		g.further += v.further
		if v.further < 0 {
			g.unfilled++
		}
	}
	s.AddWork(len(g.values) * int(min(n.size, int64(m.most-m.fewest)+1)))
	return g, s.Spend()
}

// distribute fills the fields joining for all numbers of devices from fewest to most that may join the list. It returns false if
// no completion exists.
func (g *segmentation) distribute(fewest, most int64) bool {
	// The numbers first, first + size, first + 2*size and so on lead to the same tail.
	for first := fewest; first <= most && first-fewest < g.size; first++ {
		tail := modulo(first-g.missing, g.size)
		last := first + outcome.FloorOf(most-first, g.size)*g.size
		wanted := span{(first - g.missing - tail) / g.size, (last - g.missing - tail) / g.size}
		switch {
		case tail > 0 && g.unfilled <= 1:
			g.withTail(tail, wanted)
		case tail == 0 && g.unfilled == 0:
			g.withoutTail(wanted)
		}
	}
	return !g.joining.isEmpty()
}

// withoutTail distributes segments if every value is filled. wanted has the numbers of segments to distribute.
func (g *segmentation) withoutTail(wanted span) {
	whole := span{max(0, wanted.least), min(g.further, wanted.most)}
	if whole.isEmpty() {
		return
	}
	g.joining.join(g.missing+g.size*whole.least, g.missing+g.size*whole.most)
	for i := range g.values {
		v := &g.values[i]
		v.join(g.size, v.missing, v.further, whole, g.further-v.further)
	}
}

// withTail distributes segments if one value has a tail of the given length.
func (g *segmentation) withTail(tail int64, wanted span) {
	kinds := g.tailsOf(tail, wanted)
	for i := range g.values {
		v := &g.values[i]
		own, kind := g.tailOf(v, tail)
		if kinds[kind].count > 0 && g.mayEnd(v, own) {
			v.join(g.size, own.missing, own.further, kinds[kind].whole, g.further-v.further)
			kinds[kind].count--
		} else {
			kind = -1
		}
		for k := range kinds {
			if v.further >= 0 && kinds[k].count > 0 {
				v.join(g.size, v.missing, v.further, kinds[k].whole, kinds[k].further-v.further)
			}
		}
		if kind >= 0 {
			kinds[kind].count++
		}
	}
}

// join adds the numbers of devices that join: the missing devices, and some of the whole segments. further is the number of
// segments that the value can have. others is the number of segments that all other values can have together.
func (v *segmentValue) join(size, missing, further int64, whole span, others int64) {
	v.joining.join(missing+size*max(0, whole.least-others), missing+size*min(further, whole.most))
}

// segmentTails describes the values of one kind that may have the tail. The kind determines whole and further.
type segmentTails struct {
	count int
	// If a value of this kind has the tail, whole bounds the number of segments to distribute, and further is the number of
	// segments that fit into all values.
	whole   span
	further int64
}

// ownTail has the fields missing and further of a value that gets the tail. missing then includes the devices of the tail.
type ownTail struct{ missing, further int64 }

// tailOf returns the fields of a value that gets the tail, and the kind of the value. If the last segment of the chosen members
// becomes the tail, it is not filled, so one more segment remains to distribute.
func (g *segmentation) tailOf(v *segmentValue, tail int64) (own ownTail, kind int) {
	own.missing = v.missing + tail
	if own.missing >= g.size {
		own.missing -= g.size
		kind = 1
	}
	own.further = outcome.FloorOf(v.possible-own.missing, g.size)
	// The difference own.further - v.further is -1 or 0. With one more segment to distribute, it is 0 or 1.
	return own, 2*kind + int(own.further-v.further) + 1 - kind
}

// mayEnd reports whether a value may have the tail: it can have the devices, and all other values can be filled.
func (g *segmentation) mayEnd(v *segmentValue, own ownTail) bool {
	return own.further >= 0 && (g.unfilled == 0 || v.further < 0)
}

// tailsOf counts the values that may have the tail, by kind.
func (g *segmentation) tailsOf(tail int64, wanted span) (kinds [4]segmentTails) {
	for i := range g.values {
		if own, kind := g.tailOf(&g.values[i], tail); g.mayEnd(&g.values[i], own) {
			kinds[kind].count++
		}
	}
	for i := range kinds {
		k := &kinds[i]
		more := int64(i / 2)
		k.further = g.further + int64(i%2) - 1 + more
		k.whole = span{max(0, wanted.least+more), min(k.further, wanted.most+more)}
		if k.whole.isEmpty() {
			k.count = 0
		}
		if k.count > 0 {
			least, most := k.whole.least-more, k.whole.most-more
			g.joining.join(g.missing+tail+g.size*least, g.missing+tail+g.size*most)
		}
	}
	return kinds
}

// propagate removes the members that join in no completion, and requires the members that join in every completion. In a filtered
// list, it does the same with the devices outside of the list.
func (g *segmentation) propagate(s *propagate.State, m members) {
	gone, needed := s.Borrow(m.possible), s.Borrow(m.possible)
	defer s.GiveBack(gone)
	defer s.GiveBack(needed)
	gone.Clear()
	needed.Clear()
	for i := range g.values {
		switch v := &g.values[i]; {
		case v.possible == 0:
		case v.joining.isEmpty(), v.joining.most == 0:
			gone.Join(v.with)
		case v.joining.least == v.possible:
			needed.Join(v.with)
		}
	}
	gone.Keep(m.possible)
	needed.Keep(m.possible)
	if others := s.Domain.Count() - m.possible.Count(); others > 0 {
		rest := s.Borrow(s.Domain)
		rest.Drop(m.possible)
		switch int64(s.Left) {
		case g.joining.least:
			gone.Join(rest)
		case g.joining.most + int64(others):
			needed.Join(rest)
		}
		s.GiveBack(rest)
	}
	s.Drop(gone)
	if !s.Hypothetical && !needed.IsEmpty() {
		s.Require(needed)
	}
}

// modulo returns n modulo size as a number from 0 on.
func modulo(n, size int64) int64 {
	if n %= size; n < 0 {
		n += size
	}
	return n
}
