// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// forAll is list.all(x, holds). It is false as soon as holds is false for one device, even if holds fails for other devices.
type forAll struct {
	list  DeviceList
	slot  int
	holds propagate.Condition
}

// NewForAll returns list.all(x, holds) for the slot of x. It returns a cardinality or a global constraint if one fits.
func NewForAll(list DeviceList, slot int, holds propagate.Condition) propagate.Condition {
	general := forAll{list, slot, holds}
	if simpler, ok := liftPremise(list, holds, general, func(then propagate.Condition) propagate.Condition { return NewForAll(list, slot, then) }); ok {
		return simpler
	}
	if p, over, ok := predicateOver(list, slot, holds); ok {
		return &cardinality{predicate: p.Negate(), slot: over, Limits: outcome.Limits{Least: 0, Most: 0}, general: general}
	}
	if _, all := list.(AllDevices); all {
		if often, ok := newOccurrences(slot, holds, general); ok {
			return often
		}
		if first, ok := newFirst(slot, holds, general); ok {
			return first
		}
	}
	return general
}

func (n forAll) Bound(s *propagate.State) outcome.Outcome {
	if c := n.counting(); c != nil && s.Left == 0 {
		if result, ok := c.ofEach(s, n.slot); ok {
			return result
		}
	}
	result := n.ofChosen(s)
	switch {
	case s.Left == 0 || result == outcome.False:
	case s.Shallow:
		result = result.And(outcome.Open)
	default:
		result = result.And(n.ofDomain(s))
	}
	// If computing the list fails, the quantifier fails, even if holds is decided for all devices.
	return result | failure(s, n.list)
}

func (n forAll) ofChosen(s *propagate.State) outcome.Outcome {
	result := outcome.True
	for i := range s.Chosen.All() {
		if result = result.And(n.of(s, i)); result == outcome.False {
			break
		}
	}
	return result
}

// ofDomain returns the outcome of holds for the devices that will join the set. If fewer than s.Left possible devices may
// satisfy holds, each completion has a device that makes the quantifier false.
func (n forAll) ofDomain(s *propagate.State) outcome.Outcome {
	acceptable := 0
	var any outcome.Outcome
	for i := range s.Domain.All() {
		o := n.of(s, i)
		if o != outcome.False {
			acceptable++
		}
		any |= o
	}
	if acceptable < s.Left {
		return outcome.False
	}
	return any
}

// of returns the outcome of holds for a device, provided that the device joins the set. The outcome is true if the device is
// not in the list.
func (n forAll) of(s *propagate.State, device int) outcome.Outcome {
	if !s.Spend() {
		return outcome.Open
	}
	within := n.list.membership(s, device) &^ outcome.Error
	if !within.May(outcome.True) {
		return outcome.True
	}
	before := s.Slots[n.slot]
	s.Slots[n.slot] = device
	holds := n.holds.Bound(s)
	s.Slots[n.slot] = before
	return within.Choose(holds, outcome.True)
}

// Propagate propagates holds for each chosen device in the list, and removes possible devices that can't satisfy holds.
func (n forAll) Propagate(s *propagate.State) propagate.Status {
	if c := n.counting(); c != nil {
		if result, ok := c.propagateEach(s, n.slot); ok {
			return result
		}
	}
	if failure(s, n.list) != 0 {
		return propagate.StatusOf(n.Bound(s))
	}
	if !n.propagateChosen(s) {
		return propagate.Failed
	}
	n.removeFromDomain(s)
	return propagate.NoFix
}

// counting returns holds if holds counts devices for each device of the set, otherwise nil.
func (n forAll) counting() *cardinality {
	if _, all := n.list.(AllDevices); !all {
		return nil
	}
	c, _ := n.holds.(*cardinality)
	return c
}

func (n forAll) propagateChosen(s *propagate.State) bool {
	for i := range s.Chosen.All() {
		if n.list.membership(s, i) == outcome.True && s.Spend() {
			s.Slots[n.slot] = i
			if s.Propagate(n.holds) == propagate.Failed {
				return false
			}
		}
	}
	return true
}

func (n forAll) removeFromDomain(s *propagate.State) {
	if s.Left == 0 {
		return
	}
	possible := s.Borrow(s.Domain)
	for i := range possible.All() {
		if n.list.membership(s, i) == outcome.True && s.Spend() {
			s.Slots[n.slot] = i
			if s.IsRefutedBy(n.holds, i) {
				s.Remove(i)
			}
		}
	}
	s.GiveBack(possible)
}

// failure returns Error if computing the list may fail, otherwise no outcome.
func failure(s *propagate.State, list DeviceList) outcome.Outcome {
	if _, never := list.(AllDevices); never {
		return 0
	}
	var result outcome.Outcome
	look := func(devices bitset.Set) {
		for i := range devices.All() {
			if result |= list.membership(s, i) & outcome.Error; result != 0 {
				return
			}
		}
	}
	look(s.Chosen)
	if s.Left > 0 {
		look(s.Domain)
	}
	return result
}

// exists is list.exists(x, holds). It is computed as !list.all(x, !holds), which is also correct for CEL's errors.
type exists struct {
	list  DeviceList
	slot  int
	holds propagate.Condition
}

// NewExists returns list.exists(x, holds) for the slot of x.
func NewExists(list DeviceList, slot int, holds propagate.Condition) propagate.Condition {
	general := exists{list, slot, holds}
	if simpler, ok := liftPremise(list, holds, general, func(then propagate.Condition) propagate.Condition { return NewExists(list, slot, then) }); ok {
		return simpler
	}
	if p, over, ok := predicateOver(list, slot, holds); ok {
		return &cardinality{predicate: p, slot: over, Limits: outcome.Limits{Least: 1, Most: outcome.Unlimited}, general: general}
	}
	if _, all := list.(AllDevices); all {
		return newPattern(slot, holds, general)
	}
	return general
}

func (n exists) Bound(s *propagate.State) outcome.Outcome {
	return forAll{n.list, n.slot, NewNot(n.holds)}.Bound(s).Not()
}

// existsOne is list.exists_one(x, holds). Unlike exists, it fails if holds fails for any device.
type existsOne struct {
	list  DeviceList
	slot  int
	holds propagate.Condition
}

// NewExistsOne returns list.exists_one(x, holds) for the slot of x.
func NewExistsOne(list DeviceList, slot int, holds propagate.Condition) propagate.Condition {
	general := existsOne{list, slot, holds}
	if simpler, ok := liftPremise(list, holds, general, func(then propagate.Condition) propagate.Condition { return NewExistsOne(list, slot, then) }); ok {
		return simpler
	}
	if p, over, ok := predicateOver(list, slot, holds); ok {
		return &cardinality{predicate: p, slot: over, Limits: outcome.Limits{Least: 1, Most: 1}, general: general}
	}
	if _, all := list.(AllDevices); all {
		return newGeneralCardinality(slot, holds, outcome.Limits{Least: 1, Most: 1}, general)
	}
	return general
}

func (n existsOne) Bound(s *propagate.State) outcome.Outcome {
	t := count(s, n.list, n.slot, n.holds)
	return outcome.Compare(outcome.Equal, outcome.Number{Least: int64(t.Fewest), Most: int64(t.Most), Fails: t.Fails}, outcome.Exactly(1))
}

func (n forAll) Negation() propagate.Condition { return exists{n.list, n.slot, NewNot(n.holds)} }
func (n exists) Negation() propagate.Condition { return NewForAll(n.list, n.slot, NewNot(n.holds)) }
