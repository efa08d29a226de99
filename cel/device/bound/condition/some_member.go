// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math/bits"
	"slices"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// SomeMember is a condition on one member of the set: the device at a given position of a list.
type SomeMember struct {
	Slot  int
	Order *propagate.Leaf
	Place int64
	Size  int
	// Sorted means that the list is sorted, so the set determines which devices are candidates for the position.
	Sorted bool
	// Others are the other members that the condition refers to. Two members of the same list are different devices.
	Others []SomeMember
	Holds  propagate.Condition
}

// each calls f for each candidate until f returns false. The candidate is in its slot during the call. each returns false if
// the candidates can't be determined.
func (n SomeMember) each(s *propagate.State, f func(device int) bool) bool {
	candidates, ok := n.candidates(s)
	if !ok {
		return false
	}
	defer s.GiveBack(candidates)
	for i := range candidates.All() {
		if !s.Spend() || slices.ContainsFunc(n.Others, func(o SomeMember) bool { return o.Order == n.Order && s.Slots[o.Slot] == i }) {
			continue
		}
		s.Slots[n.Slot] = i
		if s.Chosen.Has(i) {
			if !f(i) {
				return true
			}
			continue
		}
		s.Choose(i)
		more := f(i)
		s.Unchoose(i)
		if !more {
			return true
		}
	}
	return true
}

// Bound returns the union of the condition's outcomes for all candidates.
func (n SomeMember) Bound(s *propagate.State) outcome.Outcome {
	var result outcome.Outcome
	known := n.each(s, func(int) bool {
		result |= n.Holds.Bound(s)
		return result != outcome.Open
	})
	if result == 0 || !known {
		return outcome.Open
	}
	return result
}

// Propagate removes the devices that make the condition false for every candidate.
func (n SomeMember) Propagate(s *propagate.State) propagate.Status {
	before, reached := s.Borrow(s.Domain), s.Borrow(s.Domain)
	reached.Clear()
	removed, hypothetical := s.Removed, s.Hypothetical
	s.Hypothetical = true
	holds := false
	known := n.each(s, func(i int) bool {
		now := s.Borrow(s.Domain)
		if s.Propagate(n.Holds) != propagate.Failed && s.Domain.Count() >= s.Left {
			holds = true
			reached.Join(s.Domain)
			if before.Has(i) {
				reached.Add(i)
			}
		}
		s.Domain.SetTo(now)
		s.GiveBack(now)
		return !holds || !before.IsWithin(reached)
	})
	s.Removed, s.Hypothetical = removed, hypothetical
	if known && holds && s.Left > 0 {
		s.Keep(reached)
	}
	s.GiveBack(before)
	s.GiveBack(reached)
	if !holds && known {
		return propagate.Failed
	}
	return propagate.NoFix
}

// A device is a candidate if the right number of devices can be before it and behind it in the list: not too many chosen
// devices, and enough possible devices.

// candidates returns the devices that may be at the position, in a borrowed set. It returns false if the devices can't be sorted.
func (n SomeMember) candidates(s *propagate.State) (bitset.Set, bool) {
	if !n.Sorted {
		candidates := s.Borrow(s.Chosen)
		if s.Left > 0 {
			candidates.Join(s.Domain)
		}
		return candidates, true
	}
	if n.Order == nil {
		return n.byPosition(s), true
	}
	c := s.Column(n.Order)
	if c == nil || !c.Groups.Sorted || !s.Chosen.IsWithin(c.Groups.Known) || s.Left > 0 && !s.Domain.IsWithin(c.Groups.Known) {
		return nil, false
	}
	return n.byValue(s, &c.Groups), true
}

// sideCounts counts the chosen and the possible devices on one side.
type sideCounts struct{ chosen, possible int }

// holds reports whether exactly count devices can be on this side after left more devices have been chosen.
func (r sideCounts) holds(count, left int) bool {
	return r.chosen <= count && r.chosen+min(left, r.possible) >= count
}

// byPosition returns the candidates if the list is sorted by position. No two devices have the same position.
func (n SomeMember) byPosition(s *propagate.State) bitset.Set {
	candidates := s.Borrow(s.Chosen)
	candidates.Clear()
	before, behind := sideCounts{}, sideCounts{chosen: s.Chosen.Count(), possible: s.Domain.Count()}
	if s.Left <= 0 {
		behind.possible = 0
	}
	for w := range s.Chosen {
		for word := s.Chosen[w] | s.Domain[w]; word != 0; word &= word - 1 {
			position := w*64 + bits.TrailingZeros64(word)
			chosen, left := s.Chosen.Has(position), s.Left
			if chosen {
				behind.chosen--
			} else if s.Left > 0 {
				behind.possible--
				left--
			}
			if (chosen || s.Left > 0) && before.holds(int(n.Place), left) && behind.holds(n.Size-1-int(n.Place), left) {
				candidates.Add(position)
			}
			if chosen {
				before.chosen++
			} else if s.Left > 0 {
				before.possible++
			}
		}
	}
	for _, o := range n.Others {
		if o.Sorted && o.Order == nil {
			n.dropWrongSide(candidates, s.Slots[o.Slot], o.Place)
		}
	}
	return candidates
}

// dropWrongSide removes the candidates on the wrong side of another member, which has the device other at index place.
func (n SomeMember) dropWrongSide(candidates bitset.Set, other int, place int64) {
	for i := range candidates.All() {
		if i < other != (n.Place < place) {
			candidates.Remove(i)
		}
	}
}

// byValue returns the candidates if the list is sorted by value. Devices with the same value may be in any order.
func (n SomeMember) byValue(s *propagate.State, g *propagate.Groups) bitset.Set {
	candidates := s.Borrow(s.Chosen)
	candidates.Clear()
	possible := func(of bitset.Set) int {
		if s.Left <= 0 {
			return 0
		}
		return s.Domain.CountAnd(of)
	}
	var before sideCounts
	behind := sideCounts{s.Chosen.Count(), possible(s.Domain)}
	for _, members := range g.Members {
		here := sideCounts{s.Chosen.CountAnd(members), possible(members)}
		behind.chosen -= here.chosen
		behind.possible -= here.possible
		if n.isPossible(before, here, behind, s.Left) {
			candidates.Join(members)
		}
		before.chosen += here.chosen
		before.possible += here.possible
	}
	all := s.Borrow(s.Chosen)
	if s.Left > 0 {
		all.Join(s.Domain)
	}
	candidates.Keep(all)
	s.GiveBack(all)
	return candidates
}

// isPossible reports whether a device with a given value may be at the position. before, here and behind count the devices with
// smaller, equal and greater values.
func (n SomeMember) isPossible(before, here, behind sideCounts, left int) bool {
	place, rest := int(n.Place), n.Size-1-int(n.Place)
	most := func(there sideCounts) int {
		return there.chosen + here.chosen + min(left, there.possible+here.possible) - 1
	}
	return here.chosen+here.possible > 0 && before.chosen <= place && behind.chosen <= rest &&
		most(before) >= place && most(behind) >= rest
}
