// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math/bits"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// cardinality is a condition on the number of devices in the set that satisfy a predicate. It represents comparisons of the size
// of a filter with a number, and all, exists and exists_one.
//
//	devices.filter(o, adjacent(d, o)).size() >= 2    2 or more
//	devices.exists(o, linked(d, o))                  1 or more
//	devices.exists_one(o, partner(d, o))             1
//	devices.all(o, linked(d, o))                     0 that don't satisfy it
//
// If the predicate is decided (either true or false) for each device, bounds follow from counting bits.
//
// The search spends most of its time here. The loops over bits are written by hand: a range over bitset.Set.All with an early
// return is slower, because the compiler keeps a state for each such loop.
type cardinality struct {
	predicate *propagate.Predicate
	// slot is the slot of the variable that iterates over the set.
	slot int
	outcome.Limits
	// general is the condition as written. It replaces the count if the predicate may fail.
	general propagate.Condition
}

// verdict returns the possible outcomes if the counted number lies between fewest and most.
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

// Propagate removes the devices that make the counted number too large or too small. It treats all devices that satisfy the
// predicate alike, and also all devices that don't.
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
		// No device is left to choose, so the counted number is final.
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

// Demand returns the devices that satisfy a predicate of one variable, and how many more of these devices the set needs.
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

// ofEach returns the outcome of devices.all(outer, n) for a complete set: n must hold with each device as the outer variable.
// ok is false if the predicate is not decided for a device or the work is used up.
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

// overEach returns the index of the counted variable in the predicate. ok is false unless the predicate has exactly one other
// variable and this variable is outer.
func (n *cardinality) overEach(outer int) (over int, ok bool) {
	p := n.predicate
	if len(p.Slots) != propagate.MaxArity || outer == n.slot || !p.HasVariable(outer) {
		return 0, false
	}
	if p.Slots[1] == n.slot {
		over = 1
	}
	return over, true
}

// propagateEach propagates devices.all(outer, n): n must hold with each chosen device as the outer variable. It removes
// possible devices that would violate n once they are chosen. ok is false if the predicate is not decided or the work is used
// up.
func (n *cardinality) propagateEach(s *propagate.State, outer int) (result propagate.Status, ok bool) {
	over, ok := n.overEach(outer)
	if !ok {
		return propagate.Failed, false
	}
	removed := s.Removed
	defer func() { s.Removed = s.Removed || removed }()
	// A second round is needed because the devices that the first round requires may require more devices or complete the set.
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

// propagateChosen propagates the condition for each chosen device. It collects in s.Lacking the chosen devices that need all
// but one of the devices that are left to choose.
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

// demandsOfChosen adds up how many more devices the chosen devices need. It returns false if they need more than s.Left
// devices.
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
		// Even if no device satisfies two demands at once, one choice stays free, so no device can be removed.
		return true
	}
	d := s.Demands()
	for i := range s.Chosen.All() {
		r, count := lacks(i)
		d.Add(r.Yes, count)
	}
	return d.Propagate()
}

// removeUnfit removes the possible devices that make the condition false once they are chosen.
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

// removeIsolated removes a possible device that counts too few devices even if all possible devices are chosen. This is enough
// if more devices are left to choose than any device needs, because then no other device can be removed.
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

// lacksAll reports whether a chosen device needs all but one of the devices left to choose.
func (n *cardinality) lacksAll(s *propagate.State, r *propagate.Row) bool {
	return s.Left > 1 && n.Least >= int64(s.Left-1) && int64(s.Chosen.CountAnd(r.Yes)+s.Left-1) == n.Least
}

// isStarved reports whether a possible device, once it is chosen, leaves too few devices that satisfy all needs. Each row in
// Lacking belongs to a chosen device that needs all but one of the devices left to choose. If the row does not count the
// possible device, the chosen device needs all other choices.
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

// isWithin reports whether some number between fewest and most is within the limits.
func (n *cardinality) isWithin(fewest, most int) bool {
	return int64(most) >= n.Least && int64(fewest) <= n.Most
}
