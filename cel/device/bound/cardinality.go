// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math/bits"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
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
	predicate *predicate
	// slot is that of the variable which goes over the set.
	slot int
	outcome.Limits
	// general is the condition as it is written, for predicates that may fail.
	general condition
}

// verdict is the outcome if the number is from fewest to most.
func (n *cardinality) verdict(fewest, most int) outcome.Outcome {
	return n.Limits.Verdict(int64(fewest), int64(most))
}

func (n *cardinality) negation() condition {
	if opposite, ok := n.Opposite(); ok {
		return &cardinality{n.predicate, n.slot, opposite, newNot(n.general)}
	}
	return not{n}
}

func (n *cardinality) bound(s *state) outcome.Outcome {
	r := n.predicate.row(s, n.slot)
	if !r.exact {
		return n.general.bound(s)
	}
	t := r.counts(s)
	return n.verdict(t.fewest, t.most)
}

// propagate removes what would make the number too large or too small. Devices of the domain
// are of two kinds for that: those for which the predicate holds and the others.
func (n *cardinality) propagate(s *state) status {
	r := n.predicate.row(s, n.slot)
	if !r.exact {
		return s.propagate(n.general)
	}
	if !n.propagateRow(s, r) {
		return failed
	}
	t := r.counts(s)
	if n.verdict(t.fewest, t.most) == outcome.True {
		return subsumed
	}
	return noFix
}

func (n *cardinality) propagateRow(s *state, r *row) bool {
	chosen, possible := s.countsOf(r.yes)
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
	if int64(chosen+possible) == n.Least && !s.hypothetical {
		s.require(r.yes)
		return s.Left >= 0
	}
	if !n.isWithin(chosen+1+max(0, s.Left-1-others), most) {
		s.drop(r.yes)
	}
	if others > 0 && !n.isWithin(fewest, chosen+min(s.Left-1, possible)) {
		s.keep(r.yes)
	}
	return true
}

// demand returns the devices for which a predicate of one variable holds, and how many more must join the set.
func (n *cardinality) demand(s *state) (of bitset.Set, count int) {
	if len(n.predicate.slots) != 1 || n.Least <= 0 {
		return nil, 0
	}
	r := n.predicate.rowAt(s, 0, 0)
	if !r.exact || !s.spend() {
		return nil, 0
	}
	return r.yes, int(min(n.Least, int64(s.Left+s.universe()))) - s.Chosen.CountAnd(r.yes)
}

// ofEach is what becomes of the condition for all devices of the complete set in the place
// of the outer variable. ok is false if that takes more than counting.
func (n *cardinality) ofEach(s *state, outer int) (result outcome.Outcome, ok bool) {
	over, ok := n.overEach(outer)
	if !ok {
		return 0, false
	}
	made := n.predicate.rowsOver(s, over)
	for w, word := range s.Chosen {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.at(i)
			if r == nil {
				r = n.predicate.rowAt(s, over, i)
			}
			if !r.exact || !s.spend() {
				return 0, false
			}
			if count := s.Chosen.CountAnd(r.yes); !n.isWithin(count, count) {
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
	if len(p.slots) != maxArity || outer == n.slot || !p.speaksOf(outer) {
		return 0, false
	}
	if p.slots[1] == n.slot {
		over = 1
	}
	return over, true
}

// propagateEach propagates the condition for each chosen device in the place of the outer
// variable, and removes possible ones for which it is surely false when they are
// chosen. ok is false if that takes more than counting.
func (n *cardinality) propagateEach(s *state, outer int) (result status, ok bool) {
	over, ok := n.overEach(outer)
	if !ok {
		return failed, false
	}
	removed := s.removed
	defer func() { s.removed = s.removed || removed }()
	// Once more: what is required now may require more, or just fit.
	for range 2 {
		s.removed = false
		if holds, ok := n.propagateChosen(s, over); !holds || !ok {
			return failed, ok
		}
		if !s.removed {
			break
		}
		removed = true
	}
	ok = true
	if s.Left > 0 && n.Least > 1 && !n.demandsOfChosen(s, over) {
		return failed, true
	}
	switch {
	case s.Left < 0:
		return failed, true
	case s.Left == 0:
	case n.Most < outcome.Unlimited || int64(s.Left-1) < n.Least || len(s.lacking) > 0:
		ok = n.removeUnfit(s, over)
	case s.hypothetical || !s.isAtFixpoint():
		ok = n.removeIsolated(s, over)
	}
	if s.removed {
		return noFix, ok
	}
	return fix, ok
}

// propagateChosen propagates the condition for each chosen device, and lists those that lack
// all but one of the devices that are left to choose.
func (n *cardinality) propagateChosen(s *state, over int) (holds, ok bool) {
	p := n.predicate
	made := p.rowsOver(s, over)
	s.lacking = s.lacking[:0]
	for w, word := range s.Chosen {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.at(i)
			if r == nil {
				r = p.rowAt(s, over, i)
			}
			if !r.exact || !s.spend() {
				return false, false
			}
			if !n.propagateRow(s, r) {
				return false, true
			}
			if n.lacksAll(s, r) {
				s.lacking = append(s.lacking, r)
			}
		}
	}
	return true, true
}

// demandsOfChosen demands what chosen devices lack. It is false if that is more than is to be added.
func (n *cardinality) demandsOfChosen(s *state, over int) bool {
	made := n.predicate.rowsOver(s, over)
	lacks := func(i int) (*row, int) {
		r := made.at(i)
		if r == nil {
			r = n.predicate.rowAt(s, over, i)
		}
		return r, int(n.Least) - s.Chosen.CountAnd(r.yes)
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
	d := s.demands()
	for i := range s.Chosen.All() {
		r, count := lacks(i)
		d.add(r.yes, count)
	}
	return d.propagate()
}

// removeUnfit removes the possible devices for which the condition would surely be false.
func (n *cardinality) removeUnfit(s *state, over int) (ok bool) {
	p := n.predicate
	made := p.rowsOver(s, over)
	size, left := s.Domain.Count(), s.Left-1
	for w, word := range s.Domain {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.at(i)
			if r == nil {
				r = p.rowAt(s, over, i)
			}
			if !r.exact || !s.spend() {
				return false
			}
			chosen, possible := s.countsOf(r.yes)
			others := size - possible
			if r.yes.Has(i) {
				chosen++
				possible--
			} else {
				others--
			}
			if !n.isWithin(chosen+max(0, left-others), chosen+min(left, possible)) || len(s.lacking) > 0 && n.isStarved(s, i, r) {
				s.remove(i)
				size--
			}
		}
	}
	return true
}

// removeIsolated removes the possible devices that count too few even if all that are
// possible are chosen. Nothing more can be told while more are left to choose than
// any device needs.
func (n *cardinality) removeIsolated(s *state, over int) (ok bool) {
	all := s.borrow(s.Domain)
	defer s.giveBack(all)
	all.Join(s.Chosen)
	made := n.predicate.rowsOver(s, over)
	for w, word := range s.Domain {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			r := made.at(i)
			if r == nil {
				r = n.predicate.rowAt(s, over, i)
			}
			if !r.exact || !s.spend() {
				return false
			}
			if int64(all.CountAnd(r.yes)) < n.Least {
				s.remove(i)
			}
		}
	}
	return true
}

// lacksAll reports whether a chosen device needs all but one of the devices that are left
// to choose.
func (n *cardinality) lacksAll(s *state, r *row) bool {
	return s.Left > 1 && n.Least >= int64(s.Left-1) && int64(s.Chosen.CountAnd(r.yes)+s.Left-1) == n.Least
}

// isStarved reports whether choosing the possible device leaves too little for it: chosen
// devices that need as many as are left then, and can't count it, need all the rest.
func (n *cardinality) isStarved(s *state, device int, r *row) bool {
	left := s.Left - 1
	rest := s.borrow(s.Domain)
	defer s.giveBack(rest)
	rest.Remove(device)
	for _, other := range s.lacking {
		if !other.yes.Has(device) {
			rest.Keep(other.yes)
		}
	}
	counted := s.Chosen.CountAnd(r.yes) + min(left, rest.CountAnd(r.yes))
	if r.yes.Has(device) {
		counted++
	}
	return rest.Count() < left || int64(counted) < n.Least
}

// isWithin reports whether a number from fewest to most may be one for which the condition
// is true.
func (n *cardinality) isWithin(fewest, most int) bool {
	return int64(most) >= n.Least && int64(fewest) <= n.Most
}
