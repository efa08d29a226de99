// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// counted is a condition on the number of devices in the set for which a predicate
// holds: the size of a filter compared with a number, all, exists and exists_one.
//
//	devices.filter(o, adjacent(d, o)).size() >= 2    2 or more
//	devices.exists(o, linked(d, o))                  1 or more
//	devices.exists_one(o, partner(d, o))             1
//	devices.all(o, linked(d, o))                     0 for which it does not hold
//
// As long as the predicate is true or false for all devices, bounds are a few counts
// of bits.
type counted struct {
	predicate predicate
	// slot is that of the variable which goes over the set.
	slot int
	limits
	// general is the condition as it is written, for predicates that may fail.
	general condition
}

// verdict is the outcome if the number is from fewest to most.
func (n counted) verdict(fewest, most int) Outcome {
	return n.limits.verdict(int64(fewest), int64(most))
}

func (n counted) negate() condition {
	if opposite, ok := n.limits.opposite(); ok {
		return counted{n.predicate, n.slot, opposite, newNot(n.general)}
	}
	return not{n}
}

func (n counted) bound(s *state) Outcome {
	r := n.predicate.row(s, n.slot)
	if !r.exact {
		return n.general.bound(s)
	}
	t := r.tally(s)
	return n.verdict(t.fewest, t.most)
}

// refine removes what would make the number too large or too small. Possible devices
// are of two kinds for that: those for which the predicate holds and the others.
func (n counted) refine(s *state) bool {
	r := n.predicate.row(s, n.slot)
	if !r.exact {
		return s.refine(n.general)
	}
	chosen, possible := s.Chosen.CountAnd(r.yes), s.Possible.CountAnd(r.yes)
	others := s.Possible.Count() - possible
	if n.verdict(chosen+max(0, s.Left-others), chosen+min(s.Left, possible)) == False {
		return false
	}
	if s.Left == 0 {
		return true
	}
	if possible > 0 && n.verdict(chosen+1+max(0, s.Left-1-others), chosen+min(s.Left, possible)) == False {
		s.drop(r.yes)
	}
	if others > 0 && n.verdict(chosen+max(0, s.Left-others), chosen+min(s.Left-1, possible)) == False {
		s.keep(r.yes)
	}
	return true
}

// removeUncountable removes the possible devices of the list for which the condition
// is surely false when they are chosen, the outer variable standing for them. It is
// false if that takes more than counting.
func (n counted) removeUncountable(s *state, list deviceList, outer int) bool {
	if _, all := list.(allDevices); !all || outer == n.slot {
		return false
	}
	possible := s.borrow(s.Possible)
	defer s.giveBack(possible)
	size := s.Possible.Count()
	counting := true
	possible.each(func(i int) bool {
		s.slots[outer] = i
		r := n.predicate.row(s, n.slot)
		if counting = r.exact && s.spend(); !counting {
			return false
		}
		fewest, most := s.Chosen.CountAnd(r.yes), s.Possible.CountAnd(r.yes)
		left := s.Left - 1
		others := size - most
		if r.yes.Has(i) {
			fewest++
			most--
		} else {
			others--
		}
		if n.verdict(fewest+max(0, left-others), fewest+min(left, most)) == False {
			s.remove(i)
			size--
		}
		return true
	})
	return counting
}
