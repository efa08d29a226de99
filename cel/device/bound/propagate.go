// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bitset"

// A condition is propagated by removing devices from the domain: those that make
// it surely false when they are chosen. Every condition can be propagated by probing,
// that is by choosing each device and asking for the bound. The constructs that come
// up often know how to do better; what they remove is part of what probing removes,
// and they find out by the way whether the condition itself is surely false.

// propagator is a condition that knows how to be propagated.
type propagator interface {
	condition
	// propagate removes devices from s.Domain that would make the condition surely false
	// if they were chosen. It is false if the condition is surely false already.
	propagate(s *state) bool
}

// finisher is a condition that may know that there is nothing more to remove because of
// it alone.
type finisher interface {
	condition
	// finish is propagate. If atFixpoint is true, propagating once more would remove nothing and
	// force nothing: the domain is at a fixpoint.
	finish(s *state) (holds, atFixpoint bool)
}

// propagate removes what can be removed at low cost.
func (s *state) propagate(c condition) bool {
	if r, ok := c.(propagator); ok {
		return r.propagate(s)
	}
	return c.bound(s) != False
}

// finish propagates, and tells whether it is known that propagating once more would change
// nothing.
func (s *state) finish(c condition) (holds, atFixpoint bool) {
	if f, ok := c.(finisher); ok {
		return f.finish(s)
	}
	return s.propagate(c), false
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

// Infeasible tells whether no completion satisfies the expression and none makes it
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
	for {
		s.removed = false
		atFixpoint := len(s.conjuncts) == 1
		for _, c := range s.conjuncts {
			holds, alone := s.finish(c)
			if !holds {
				return false
			}
			atFixpoint = atFixpoint && alone
		}
		if effort == Thorough && !s.removed && !atFixpoint {
			for _, c := range s.conjuncts {
				if _, propagated := c.(propagator); !propagated {
					s.probe(c)
				}
			}
		}
		switch {
		case s.Left < 0 || s.Domain.Count() < s.Left:
			return false
		case atFixpoint || !s.removed || s.exhausted:
			return true
		}
	}
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

// isRefutedBy tells whether the condition is surely false if the possible device is
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

func (n and) propagate(s *state) bool { return s.propagate(n.left) && s.propagate(n.right) }

// propagate: a device is removed if it makes both sides surely false.
func (n or) propagate(s *state) bool {
	holds, _ := n.finish(s)
	return holds
}

// finish: with fewer devices a side removes no less. So what a side at its fixpoint has kept it
// keeps beside the devices that only the other has kept, and removes these again.
func (n or) finish(s *state) (holds, atFixpoint bool) {
	before := s.borrow(s.Domain)
	removed, hypothetical := s.removed, s.hypothetical
	s.hypothetical = true
	left, leftAtFixpoint := s.finish(n.left)
	left = left && s.Domain.Count() >= s.Left
	afterLeft := s.borrow(s.Domain)
	s.Domain.SetTo(before)
	right, rightAtFixpoint := s.finish(n.right)
	right = right && s.Domain.Count() >= s.Left
	switch {
	case left && right:
		s.Domain.Join(afterLeft)
	case left:
		s.Domain.SetTo(afterLeft)
	}
	s.hypothetical = hypothetical
	s.removed = removed || before.Keep(s.Domain)
	s.giveBack(before)
	s.giveBack(afterLeft)
	return left || right, leftAtFixpoint && rightAtFixpoint
}
