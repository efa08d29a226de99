// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/celset/celset/cel/device/bitset"
)

// A condition is propagated by removing devices from the domain: those that make
// it surely false when they are chosen. Every condition can be propagated by probing,
// that is by choosing each device and asking for the bound. The constructs that come up
// often know how to do better; what they remove is part of what probing removes,
// and they find out by the way whether the condition itself is surely false.

// status is what propagating a condition came to, in the words of Gecode.
type status int

const (
	// failed: the condition is surely false.
	failed status = iota
	// noFix: propagating once more might remove or require something.
	noFix
	// fix: propagating once more would change nothing, as long as nothing else changes.
	fix
	// subsumed: the condition is surely true, whichever devices of the domain are chosen.
	subsumed
)

// propagator is a condition that knows how to be propagated.
type propagator interface {
	condition
	// propagate removes devices from s.Domain that would make the condition surely false
	// if they were chosen. It may require devices that are in all completions for which the
	// condition is true, unless s.hypothetical: then the condition need not hold.
	propagate(s *state) status
}

// propagate removes what can be removed at low cost.
func (s *state) propagate(c condition) status {
	if p, ok := c.(propagator); ok {
		return p.propagate(s)
	}
	return statusOf(c.bound(s))
}

// statusOf is the status of a condition that removes nothing.
func statusOf(bound Outcome) status {
	switch bound {
	case False:
		return failed
	case True:
		return subsumed
	default:
		return fix
	}
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
func (b *Bounds) Infeasible(p Partial, effort Effort) bool {
	if p.Forced != nil {
		p.Forced.Clear()
	}
	s := &b.state
	if !s.begin(p) {
		return false
	}
	b.before.SetTo(p.Domain)
	s.forced.Clear()
	infeasible := !s.propagateAll(effort)
	// What was forced was chosen to find out more. It is the caller's to choose it.
	p.Chosen.Drop(s.forced)
	p.Domain.Join(s.forced)
	if !s.isSound() {
		p.Domain.SetTo(b.before)
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

// propagateAll goes on until nothing more can be removed. A completion with a removed
// device is false, since false absorbs whatever the other conjuncts become.
func (s *state) propagateAll(effort Effort) bool {
	s.active = append(s.active[:0], s.conjuncts...)
	for {
		if !s.toFixpoint() {
			return false
		}
		s.removed = false
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
		case !s.removed || s.exhausted:
			return true
		}
	}
}

// toFixpoint propagates one conjunct after the other until none of them changes anything. It is false
// if one has failed, or too few devices are left. A conjunct that is subsumed leaves the round.
func (s *state) toFixpoint() bool {
	// unchanged counts the conjuncts that were propagated since something changed.
	for next, unchanged := 0, 0; unchanged < len(s.active); next++ {
		next %= len(s.active)
		s.removed = false
		was := s.propagate(s.active[next])
		switch {
		case was == failed || s.Left < 0 || s.Domain.Count() < s.Left:
			return false
		case s.exhausted:
			return true
		case s.removed:
			unchanged = 0
		}
		switch {
		case was == subsumed:
			s.active = slices.Delete(s.active, next, next+1)
			next--
		case was == fix || !s.removed:
			unchanged++
		}
	}
	return s.Left >= 0 && s.Domain.Count() >= s.Left
}

// probe chooses each possible device in turn and removes those that make the
// condition surely false.
func (s *state) probe(c condition) {
	if s.Left == 0 || isOpen(c) {
		return
	}
	s.shallow = true
	possible := s.borrow(s.Domain)
	for i := range possible.All() {
		if s.isRefutedBy(c, i) {
			s.remove(i)
		}
	}
	s.giveBack(possible)
	s.shallow = false
}

// isRefutedBy reports whether the condition is surely false if the possible device is
// chosen.
func (s *state) isRefutedBy(c condition, device int) bool {
	s.choose(device)
	refuted := c.bound(s) == False || s.Domain.Count() < s.Left
	s.unchoose(device)
	return refuted
}

func (s *state) choose(device int) {
	s.Domain.Remove(device)
	s.Chosen.Add(device)
	s.Left--
}

func (s *state) unchoose(device int) {
	s.Left++
	s.Chosen.Remove(device)
	s.Domain.Add(device)
}

func (s *state) remove(device int) {
	s.Domain.Remove(device)
	s.removed = true
}

// require chooses the possible devices of a set, because no completion that is not
// false can do without them.
func (s *state) require(devices bitset.Set) {
	s.Left -= devices.CountAnd(s.Domain)
	for w, word := range devices {
		word &= s.Domain[w]
		s.Domain[w] &^= word
		s.Chosen[w] |= word
		s.forced[w] |= word
	}
	s.removed = true
}

// keep removes the devices that are not in the set.
func (s *state) keep(devices bitset.Set) { s.removed = s.Domain.Keep(devices) || s.removed }

// drop removes the devices that are in the set.
func (s *state) drop(devices bitset.Set) { s.removed = s.Domain.Drop(devices) || s.removed }

func (n and) propagate(s *state) status {
	left := s.propagate(n.left)
	if left == failed {
		return failed
	}
	switch right := s.propagate(n.right); {
	case right == failed:
		return failed
	case left == subsumed && right == subsumed:
		return subsumed
	default:
		return noFix
	}
}

// propagate: a device is removed if it makes both sides surely false. With fewer devices a side removes no
// less. So what a side at its fixpoint has kept it keeps beside the devices that only the other has kept, and
// removes these again.
func (n or) propagate(s *state) status {
	before := s.borrow(s.Domain)
	removed, hypothetical := s.removed, s.hypothetical
	s.hypothetical = true
	left := s.propagateSide(n.left, before)
	if left == subsumed {
		s.removed, s.hypothetical = removed, hypothetical
		s.giveBack(before)
		return subsumed
	}
	afterLeft := s.borrow(s.Domain)
	s.Domain.SetTo(before)
	right := s.propagateSide(n.right, before)
	switch {
	case left != failed && right != failed:
		s.Domain.Join(afterLeft)
	case left != failed:
		s.Domain.SetTo(afterLeft)
	}
	s.hypothetical = hypothetical
	s.removed = removed || before.Keep(s.Domain)
	s.giveBack(before)
	s.giveBack(afterLeft)
	switch {
	case left == failed && right == failed:
		return failed
	case right == subsumed:
		return subsumed
	case left == noFix || right == noFix:
		return noFix
	default:
		return fix
	}
}

// propagateSide is propagate for what need not hold. What is subsumed only without the devices that it has
// removed is true for some completions, not for all.
func (s *state) propagateSide(c condition, before bitset.Set) status {
	switch was := s.propagate(c); {
	case was == failed || s.Domain.Count() < s.Left:
		return failed
	case was == subsumed && !before.IsWithin(s.Domain):
		return fix
	default:
		return was
	}
}
