// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// Infeasible propagates the conjuncts of a problem to a fixpoint:
//
//   1. Devices of complete parts are removed (propagateParts).
//      Each active conjunct is propagated in turn until none of them changes the state (toFixpoint). A subsumed conjunct
//      becomes inactive.
//   2. The numbers of devices that single conjuncts still need are added up (demandsOfConjuncts).
//   3. If the effort is Thorough, each possible device is tried with each conjunct without a propagator (probe).
//   4. If a device was removed or required, the steps start again.
//
// Invariant: if a device is removed, every completion with the device is false, because a false conjunct makes the conjunction
// false even if another conjunct fails. If a device is forced, it is in every other completion.
//
// Probing works for every condition: choose each possible device in turn and compute the bound. A propagator is cheaper. It
// removes only a part of the devices that probing removes, but also detects a condition that is false in every completion. One
// call visits at most maxWork devices.

// propagateAll runs the steps of Infeasible. It returns false if every completion is false.
func (s *State) propagateAll(effort Effort) bool {
	s.active = append(s.active[:0], s.Conjuncts...)
	for {
		if !s.propagateParts() || !s.toFixpoint() || !s.propagateParts() {
			return false
		}
		s.Removed = false
		if !s.demandsOfConjuncts() {
			return false
		}
		if effort == Thorough {
			for _, c := range s.active {
				if _, propagated := c.(propagator); !propagated {
					s.probe(c)
				}
			}
		}
		switch {
		case s.Domain.Count() < s.Left:
			return false
		case !s.Removed || s.Exhausted:
			return true
		}
	}
}

// toFixpoint propagates the active conjuncts in turn until none of them changes the state. It returns false if a conjunct fails
// or too few devices are left. Subsumed conjuncts are removed from active.
func (s *State) toFixpoint() bool {
	// unchanged counts the conjuncts that were propagated since the state last changed.
	for next, unchanged := 0, 0; unchanged < len(s.active); next++ {
		next %= len(s.active)
		s.Removed = false
		was := s.Propagate(s.active[next])
		switch {
		case was == Failed || s.Left < 0 || s.Domain.Count() < s.Left:
			return false
		case s.Exhausted:
			return true
		case s.Removed:
			unchanged = 0
		}
		switch {
		case was == Subsumed:
			s.active = slices.Delete(s.active, next, next+1)
			next--
		case was == Fix || !s.Removed:
			unchanged++
		}
	}
	return s.Left >= 0 && s.Domain.Count() >= s.Left
}

// Uniform is a condition or a quantity that can tell which devices affect it equally.
type Uniform interface {
	// Narrow removes each device from the set whose choice may affect the condition differently than the choice of the given
	// device, which is in the set. It returns false if the condition may distinguish any two devices.
	Narrow(s *State, device int, to bitset.Set) bool
}

// probe chooses each possible device in turn and removes it if the condition is then false in every completion. Of devices that
// the condition does not distinguish, only the first is chosen.
func (s *State) probe(c Condition) {
	if s.Left == 0 || IsOpen(c) {
		return
	}
	s.Shallow = true
	possible, equal := s.Borrow(s.Domain), s.Borrow(s.Domain)
	uniform, isUniform := c.(Uniform)
	for i := possible.Next(0); i >= 0; i = possible.Next(i + 1) {
		equal.SetTo(possible)
		isUniform = isUniform && uniform.Narrow(s, i, equal)
		if isUniform {
			s.narrowToPart(i, equal)
			possible.Drop(equal)
		}
		switch {
		case !s.IsRefutedBy(c, i):
		case isUniform:
			s.Drop(equal)
		default:
			s.Remove(i)
		}
	}
	s.GiveBack(equal)
	s.GiveBack(possible)
	s.Shallow = false
}

// Effort is the amount of work that Infeasible spends on a partial set.
type Effort int

const (
	// Quick runs only propagators.
	Quick Effort = iota
	// Thorough also probes each possible device with each conjunct that has no propagator.
	Thorough
)

// Infeasible reports whether all completions are false. If not, it removes a device from p.Domain if every completion with it
// is false, and adds a device to p.Forced if all other completions contain it.
func (s *State) Infeasible(p Partial, effort Effort) bool {
	if p.Forced != nil {
		p.Forced.Clear()
	}
	if !s.Begin(p) {
		return false
	}
	s.before.SetTo(p.Domain)
	s.forced.Clear()
	infeasible := !s.propagateAll(effort)
	// Propagation moved forced devices to the chosen devices. Undo this, because the caller decides whether to choose them.
	p.Chosen.Drop(s.forced)
	p.Domain.Join(s.forced)
	if !s.IsSound() {
		p.Domain.SetTo(s.before)
		return false
	}
	if !infeasible && p.Forced != nil {
		p.Forced.SetTo(s.forced)
		if s.Domain.Count() == p.Left {
			p.Forced.SetTo(p.Domain)
		}
	}
	return infeasible
}
