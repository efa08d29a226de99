// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/outcome"
)

import "github.com/celset/celset/cel/device/bitset"

// generalCardinality is a condition on the number of devices in the set for which a condition
// holds that speaks of the set itself: of a stretch of a ring, all devices but the last
// one have their successor with them.
//
//	devices.exists_one(d, !devices.exists(o, follows(o, d)))
//
// Once the number is reached, the condition must be false for all the others; if the
// number can only just be reached, it must hold for all that are left.
type generalCardinality struct {
	slot         int
	holds, fails condition
	outcome.Limits
	// general is the condition as it is written, for parts that may fail.
	general condition
}

// newGeneralCardinality counts the devices of the whole set.
func newGeneralCardinality(slot int, holds condition, l outcome.Limits, general condition) condition {
	if isOpen(holds) {
		return general
	}
	if simpler, ok := raised(allDevices{}, holds, general, func(then condition) condition { return newGeneralCardinality(slot, then, l, general) }); ok {
		return simpler
	}
	n := generalCardinality{slot, holds, newNot(holds), l, general}
	return newStretches(slot, n.holds, n.fails, l, n)
}

func (n generalCardinality) bound(s *state) outcome.Outcome { return n.general.bound(s) }

// propagate bounds the number and goes on with the chosen devices for which the condition is
// open.
func (n generalCardinality) propagate(s *state) status {
	certain := s.borrow(s.Domain)
	defer s.giveBack(certain)
	surely, open, ok := n.classify(s, s.Chosen, nil)
	if !ok {
		return statusOf(n.general.bound(s))
	}
	joining, candidates, ok := n.classify(s, s.Domain, certain)
	if !ok {
		return statusOf(n.general.bound(s))
	}
	others := s.Domain.Count() - joining
	fewest := surely + max(0, s.Left-others)
	most := surely + open + min(s.Left, joining+candidates)
	if int64(most) < n.Least || int64(fewest) > n.Most {
		return failed
	}
	if joining > 0 && s.Left > 0 && int64(surely+1+max(0, s.Left-1-others)) > n.Most {
		s.drop(certain)
	}
	switch {
	case open > 0 && int64(surely) == n.Most:
		return n.propagateOpen(s, n.fails)
	case open > 0 && int64(most) == n.Least:
		return n.propagateOpen(s, n.holds)
	default:
		return noFix
	}
}

// classify counts the devices for which the condition surely holds, keeps them in the
// set certain, and counts those for which it may hold or not. ok is false if it may
// fail, or too much was looked at.
func (n generalCardinality) classify(s *state, devices, certain bitset.Set) (surely, open int, ok bool) {
	certain.Clear()
	for i := range devices.All() {
		s.slots[n.slot] = i
		switch n.holds.bound(s) {
		case outcome.True:
			surely++
			if certain != nil {
				certain.Add(i)
			}
		case outcome.True | outcome.False:
			open++
		case outcome.False:
		default:
			return 0, 0, false
		}
		if !s.spend() {
			return 0, 0, false
		}
	}
	return surely, open, true
}

// propagateOpen propagates a condition for the chosen devices for which it is not decided.
func (n generalCardinality) propagateOpen(s *state, must condition) status {
	for i := range s.Chosen.All() {
		s.slots[n.slot] = i
		if n.holds.bound(s) == outcome.True|outcome.False && s.propagate(must) == failed {
			return failed
		}
	}
	return noFix
}
