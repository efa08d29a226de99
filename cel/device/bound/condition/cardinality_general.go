// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// generalCardinality is a condition on the number of devices in the set that satisfy a condition on the set itself. For example,
// all devices of a stretch of a ring except the last have their successor in the set:
//
//	devices.exists_one(d, !devices.exists(o, follows(o, d)))
//
// If the number of devices that surely satisfy the condition reaches the maximum, all other devices must violate the condition.
// If the minimum can only just be reached, all undecided devices must satisfy the condition.
type generalCardinality struct {
	slot         int
	holds, fails propagate.Condition
	outcome.Limits
	// general is the condition as written. It replaces the count if a part of the condition may fail.
	general propagate.Condition
}

// newGeneralCardinality returns the condition that the number of devices of the whole set that satisfy holds is within the
// limits.
func newGeneralCardinality(slot int, holds propagate.Condition, l outcome.Limits, general propagate.Condition) propagate.Condition {
	if propagate.IsOpen(holds) {
		return general
	}
	if simpler, ok := liftPremise(AllDevices{}, holds, general, func(then propagate.Condition) propagate.Condition {
		return newGeneralCardinality(slot, then, l, general)
	}); ok {
		return simpler
	}
	n := generalCardinality{slot, holds, NewNot(holds), l, general}
	return newStretches(slot, n.holds, n.fails, l, n)
}

func (n generalCardinality) Bound(s *propagate.State) outcome.Outcome { return n.general.Bound(s) }

// Propagate bounds the counted number. It propagates the counted condition, or its negation, for chosen undecided devices.
func (n generalCardinality) Propagate(s *propagate.State) propagate.Status {
	certain := s.Borrow(s.Domain)
	defer s.GiveBack(certain)
	surely, open, ok := n.classify(s, s.Chosen, nil)
	if !ok {
		return propagate.StatusOf(n.general.Bound(s))
	}
	joining, candidates, ok := n.classify(s, s.Domain, certain)
	if !ok {
		return propagate.StatusOf(n.general.Bound(s))
	}
	others := s.Domain.Count() - joining
	fewest := surely + max(0, s.Left-others)
	most := surely + open + min(s.Left, joining+candidates)
	if int64(most) < n.Least || int64(fewest) > n.Most {
		return propagate.Failed
	}
	if joining > 0 && s.Left > 0 && int64(surely+1+max(0, s.Left-1-others)) > n.Most {
		s.Drop(certain)
	}
	switch {
	case open > 0 && int64(surely) == n.Most:
		return n.propagateOpen(s, n.fails)
	case open > 0 && int64(most) == n.Least:
		return n.propagateOpen(s, n.holds)
	default:
		return propagate.NoFix
	}
}

// classify counts the devices that surely satisfy the condition (surely) and the undecided devices (open). If certain is not
// nil, classify adds the devices that surely satisfy the condition to certain. ok is false if the condition may fail or the
// work is used up.
func (n generalCardinality) classify(s *propagate.State, devices, certain bitset.Set) (surely, open int, ok bool) {
	certain.Clear()
	for i := range devices.All() {
		s.Slots[n.slot] = i
		switch n.holds.Bound(s) {
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
		if !s.Spend() {
			return 0, 0, false
		}
	}
	return surely, open, true
}

// propagateOpen propagates must for each chosen device that is still undecided.
func (n generalCardinality) propagateOpen(s *propagate.State, must propagate.Condition) propagate.Status {
	for i := range s.Chosen.All() {
		s.Slots[n.slot] = i
		if n.holds.Bound(s) == outcome.True|outcome.False && s.Propagate(must) == propagate.Failed {
			return propagate.Failed
		}
	}
	return propagate.NoFix
}
