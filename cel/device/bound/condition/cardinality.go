// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math/bits"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// cardinality is a condition on the number of devices in the set for which a predicate
// holds: the size of a filter compared with a number, all, exists and exists_one.
//
//	devices.filter(o, adjacent(d, o)).size() >= 2    2 or more
//	devices.exists(o, linked(d, o))                  1 or more
//	devices.exists_one(o, partner(d, o))             1
//	devices.all(o, linked(d, o))                     0 for which it does not hold
//
// As long as the predicate is true or false for all devices, bounds are a few counts
// of bits.
//
// Here the search spends most of its time, and the loops return early: the compiler would
// keep a state for each range over bitset.Set.All that does. So they are written by hand.
type cardinality struct {
	predicate *propagate.Predicate
	// slot is that of the variable which goes over the set.
	slot int
	outcome.Limits
	// general is the condition as it is written, for predicates that may fail.
	general propagate.Condition
}

// verdict is the outcome if the number is from fewest to most.
func (n *cardinality) verdict(fewest, most int) outcome.Outcome {
	return n.Verdict(int64(fewest), int64(most))
}

func (n *cardinality) Negation() propagate.Condition {
	if opposite, ok := n.Opposite(); ok {
		return &cardinality{n.predicate, n.slot, opposite, NewNot(n.general)}
	}
	return not{n}
}

func (n *cardinality) Bound(s *propagate.State) outcome.Outcome {
	r := n.predicate.Row(s, n.slot)
	if !r.Exact {
		return n.general.Bound(s)
	}
	t := r.Counts(s)
	return n.verdict(t.Fewest, t.Most)
}

// Propagate removes what would make the number too large or too small. Devices of the domain
// are of two kinds for that: those for which the predicate holds and the others.
func (n *cardinality) Propagate(s *propagate.State) propagate.Status {
	r := n.predicate.Row(s, n.slot)
	if !r.Exact {
		return s.Propagate(n.general)
	}
	if !n.propagateRow(s, r) {
		return propagate.Failed
	}
	t := r.Counts(s)
	if n.verdict(t.Fewest, t.Most) == outcome.True {
		return propagate.Subsumed
	}
	return propagate.NoFix
}

func (n *cardinality) propagateRow(s *propagate.State, r *propagate.Row) bool {
	chosen, possible := s.CountsOf(r.Yes)
	if possible == 0 {
		// Nothing can change the number any more.
		return n.isWithin(chosen, chosen) && s.Left >= 0
	}
	others := s.Domain.Count() - possible
	fewest, most := chosen+max(0, s.Left-others), chosen+min(s.Left, possible)
	if !n.isWithin(fewest, most) {
		return false
	}
	if s.Left <= 0 {
		return s.Left == 0
	}
	if int64(chosen+possible) == n.Least && !s.Hypothetical {
		s.Require(r.Yes)
		return s.Left >= 0
	}
	if !n.isWithin(chosen+1+max(0, s.Left-1-others), most) {
		s.Drop(r.Yes)
	}
	if others > 0 && !n.isWithin(fewest, chosen+min(s.Left-1, possible)) {
		s.Keep(r.Yes)
	}
	return true
}

// Demand returns the devices for which a predicate of one variable holds, and how many more must join the set.
func (n *cardinality) Demand(s *propagate.State) (of bitset.Set, count int) {
	if len(n.predicate.Slots) != 1 || n.Least <= 0 {
		return nil, 0
	}
	r := n.predicate.RowAt(s, 0, 0)
	if !r.Exact || !s.Spend() {
		return nil, 0
	}
	return r.Yes, int(min(n.Least, int64(s.Left+s.Universe()))) - s.Chosen.CountAnd(r.Yes)
}

// ofEach returns the outcome of the condition for all devices of the complete set in the place
// of the outer variable. ok is false if that takes more than counting.
func (n *cardinality) ofEach(s *propagate.State, outer int) (result outcome.Outcome, ok bool) {
	over, ok := n.overEach(outer)
	if !ok {
		return 0, false
	}
	made := n.predicate.RowsOver(s, over)
	for w, word := range s.Chosen {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.At(i)
			if r == nil {
				r = n.predicate.RowAt(s, over, i)
			}
			if !r.Exact || !s.Spend() {
				return 0, false
			}
			if count := s.Chosen.CountAnd(r.Yes); !n.isWithin(count, count) {
				return outcome.False, true
			}
		}
	}
	return outcome.True, true
}

// overEach is the place of the variable that is counted, among those of the predicate, if
// the other one is the outer variable.
func (n *cardinality) overEach(outer int) (over int, ok bool) {
	p := n.predicate
	if len(p.Slots) != propagate.MaxArity || outer == n.slot || !p.SpeaksOf(outer) {
		return 0, false
	}
	if p.Slots[1] == n.slot {
		over = 1
	}
	return over, true
}

// propagateEach propagates the condition for each chosen device in the place of the outer
// variable, and removes possible ones for which it is surely false when they are
// chosen. ok is false if that takes more than counting.
func (n *cardinality) propagateEach(s *propagate.State, outer int) (result propagate.Status, ok bool) {
	over, ok := n.overEach(outer)
	if !ok {
		return propagate.Failed, false
	}
	removed := s.Removed
	defer func() { s.Removed = s.Removed || removed }()
	// Once more: what is required now may require more, or just fit.
	for range 2 {
		s.Removed = false
		if holds, ok := n.propagateChosen(s, over); !holds || !ok {
			return propagate.Failed, ok
		}
		if !s.Removed {
			break
		}
		removed = true
	}
	ok = true
	if s.Left > 0 && n.Least > 1 && !n.demandsOfChosen(s, over) {
		return propagate.Failed, true
	}
	switch {
	case s.Left < 0:
		return propagate.Failed, true
	case s.Left == 0:
	case n.Most < outcome.Unlimited || int64(s.Left-1) < n.Least || len(s.Lacking) > 0:
		ok = n.removeUnfit(s, over)
	case s.Hypothetical || !s.IsAtFixpoint():
		ok = n.removeIsolated(s, over)
	}
	if s.Removed {
		return propagate.NoFix, ok
	}
	return propagate.Fix, ok
}

// propagateChosen propagates the condition for each chosen device, and lists those that lack
// all but one of the devices that are left to choose.
func (n *cardinality) propagateChosen(s *propagate.State, over int) (holds, ok bool) {
	p := n.predicate
	made := p.RowsOver(s, over)
	s.Lacking = s.Lacking[:0]
	for w, word := range s.Chosen {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.At(i)
			if r == nil {
				r = p.RowAt(s, over, i)
			}
			if !r.Exact || !s.Spend() {
				return false, false
			}
			if !n.propagateRow(s, r) {
				return false, true
			}
			if n.lacksAll(s, r) {
				s.Lacking = append(s.Lacking, r)
			}
		}
	}
	return true, true
}

// demandsOfChosen demands what chosen devices lack. It is false if that is more than is to be added.
func (n *cardinality) demandsOfChosen(s *propagate.State, over int) bool {
	made := n.predicate.RowsOver(s, over)
	lacks := func(i int) (*propagate.Row, int) {
		r := made.At(i)
		if r == nil {
			r = n.predicate.RowAt(s, over, i)
		}
		return r, int(n.Least) - s.Chosen.CountAnd(r.Yes)
	}
	most := 0
	for i := range s.Chosen.All() {
		if _, count := lacks(i); count > 0 {
			most += count
		}
	}
	if most < s.Left {
		// Demands for different devices are the most there can be, and leave some device free.
		return true
	}
	d := s.Demands()
	for i := range s.Chosen.All() {
		r, count := lacks(i)
		d.Add(r.Yes, count)
	}
	return d.Propagate()
}

// removeUnfit removes the possible devices for which the condition would surely be false.
func (n *cardinality) removeUnfit(s *propagate.State, over int) (ok bool) {
	p := n.predicate
	made := p.RowsOver(s, over)
	size, left := s.Domain.Count(), s.Left-1
	for w, word := range s.Domain {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.At(i)
			if r == nil {
				r = p.RowAt(s, over, i)
			}
			if !r.Exact || !s.Spend() {
				return false
			}
			chosen, possible := s.CountsOf(r.Yes)
			others := size - possible
			if r.Yes.Has(i) {
				chosen++
				possible--
			} else {
				others--
			}
			if !n.isWithin(chosen+max(0, left-others), chosen+min(left, possible)) || len(s.Lacking) > 0 && n.isStarved(s, i, r) {
				s.Remove(i)
				size--
			}
		}
	}
	return true
}

// removeIsolated removes the possible devices that count too few even if all that are
// possible are chosen. Nothing more can be told while more are left to choose than
// any device needs.
func (n *cardinality) removeIsolated(s *propagate.State, over int) (ok bool) {
	all := s.Borrow(s.Domain)
	defer s.GiveBack(all)
	all.Join(s.Chosen)
	made := n.predicate.RowsOver(s, over)
	for w, word := range s.Domain {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.At(i)
			if r == nil {
				r = n.predicate.RowAt(s, over, i)
			}
			if !r.Exact || !s.Spend() {
				return false
			}
			if int64(all.CountAnd(r.Yes)) < n.Least {
				s.Remove(i)
			}
		}
	}
	return true
}

// lacksAll reports whether a chosen device needs all but one of the devices that are left
// to choose.
func (n *cardinality) lacksAll(s *propagate.State, r *propagate.Row) bool {
	return s.Left > 1 && n.Least >= int64(s.Left-1) && int64(s.Chosen.CountAnd(r.Yes)+s.Left-1) == n.Least
}

// isStarved reports whether choosing the possible device leaves too little for it: chosen
// devices that need as many as are left then, and can't count it, need all the rest.
func (n *cardinality) isStarved(s *propagate.State, device int, r *propagate.Row) bool {
	left := s.Left - 1
	rest := s.Borrow(s.Domain)
	defer s.GiveBack(rest)
	rest.Remove(device)
	for _, other := range s.Lacking {
		if !other.Yes.Has(device) {
			rest.Keep(other.Yes)
		}
	}
	counted := s.Chosen.CountAnd(r.Yes) + min(left, rest.CountAnd(r.Yes))
	if r.Yes.Has(device) {
		counted++
	}
	return rest.Count() < left || int64(counted) < n.Least
}

// isWithin reports whether a number from fewest to most may be one for which the condition
// is true.
func (n *cardinality) isWithin(fewest, most int) bool {
	return int64(most) >= n.Least && int64(fewest) <= n.Most
}
