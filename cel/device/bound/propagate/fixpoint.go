// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import "slices"

// Infeasible propagates the conjuncts of a problem to a fixpoint:
//
//  1. Each active conjunct is propagated in turn, until none of them changes anything (toFixpoint). A conjunct that is
//     subsumed is no longer active.
//  2. The devices that conjuncts still need, each for itself, are added up (demandsOfConjuncts).
//  3. If the effort is Thorough, each possible device is tried with each conjunct that is no propagator (probe).
//  4. If a device was removed or required, the steps start again.
//
// Invariant: a device that is removed is only in completions that are false, since false absorbs whatever the other conjuncts
// become. A device that is forced is in all other completions.
//
// Every condition can be propagated by probing, that is by choosing each device and asking for the bound. A propagator does
// better: it removes a part of what probing removes, and tells by the way whether the condition itself is surely false.
// The cost of a call is limited to maxWork devices that are looked at.

// propagateAll takes the four steps. It is false if no completion is left.
func (s *State) propagateAll(effort Effort) bool {
	s.active = append(s.active[:0], s.Conjuncts...)
	for {
		if !s.toFixpoint() {
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

// toFixpoint propagates one conjunct after the other until none of them changes anything. It is false
// if one has failed, or too few devices are left. A conjunct that is subsumed leaves the round.
func (s *State) toFixpoint() bool {
	// unchanged counts the conjuncts that were propagated since something changed.
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

// probe chooses each possible device in turn and removes those that make the
// condition surely false.
func (s *State) probe(c Condition) {
	if s.Left == 0 || IsOpen(c) {
		return
	}
	s.Shallow = true
	possible := s.Borrow(s.Domain)
	for i := range possible.All() {
		if s.IsRefutedBy(c, i) {
			s.Remove(i)
		}
	}
	s.GiveBack(possible)
	s.Shallow = false
}

// Effort is how much is done to find out that a partial set is infeasible.
type Effort int

const (
	// Quick looks at what can be told at low cost.
	Quick Effort = iota
	// Thorough also tries each device of the domain with the conjuncts that don't know how to
	// be propagated.
	Thorough
)

// Infeasible reports whether no completion satisfies the expression and none makes it
// fail. It removes devices from p.Domain that are in no other completions, and
// enters those into p.Forced that are in all of them.
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
	// What was forced was chosen to find out more. It is the caller's to choose it.
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
