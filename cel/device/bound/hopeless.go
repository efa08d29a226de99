// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bitset"

// A condition is refined by removing devices from the possible ones: those that make
// it surely false when they are chosen. Every condition can be refined by probing,
// that is by choosing each device and asking for the bound. The constructs that come
// up often know how to do better; what they remove is part of what probing removes,
// and they find out by the way whether the condition itself is surely false.

// refiner is a condition that knows how to be refined.
type refiner interface {
	condition
	// refine removes devices from s.Possible that would make the condition surely false
	// if they were chosen. It is false if the condition is surely false already.
	refine(s *state) bool
}

// finisher is a condition that may know that there is nothing more to remove because of
// it alone.
type finisher interface {
	condition
	// finish is refine. If done is true, refining once more would remove and require
	// nothing.
	finish(s *state) (holds, done bool)
}

// refine removes what can be removed at low cost.
func (s *state) refine(c condition) bool {
	if r, ok := c.(refiner); ok {
		return r.refine(s)
	}
	return c.bound(s) != False
}

// finish refines, and tells whether it is known that refining once more would change
// nothing.
func (s *state) finish(c condition) (holds, done bool) {
	if f, ok := c.(finisher); ok {
		return f.finish(s)
	}
	return s.refine(c), false
}

// Effort is how much is done to find out that a partial set is hopeless.
type Effort int

const (
	// Quick looks at what can be told at low cost.
	Quick Effort = iota
	// Thorough also tries each possible device with the conjuncts that don't know how to
	// be refined.
	Thorough
)

// Hopeless tells whether no completion satisfies the expression and none makes it
// fail. It removes devices from p.Possible that are in no other completions, and
// enters those into p.Required that are in all of them.
func (b *Bounds) Hopeless(p Partial, effort Effort) bool {
	if p.Required != nil {
		p.Required.Clear()
	}
	s := &b.state
	if !s.begin(p) {
		return false
	}
	b.before.SetTo(p.Possible)
	s.required.Clear()
	hopeless := !s.refineAll(effort)
	// What was required was chosen to find out more. It is the caller's to choose it.
	p.Chosen.Drop(s.required)
	p.Possible.Join(s.required)
	if !s.isSound() {
		p.Possible.SetTo(b.before)
		return false
	}
	if !hopeless && p.Required != nil {
		p.Required.SetTo(s.required)
		if s.Possible.Count() == p.Left {
			p.Required.SetTo(p.Possible)
		}
	}
	return hopeless
}

// refineAll goes on until nothing more can be removed. A completion with a removed
// device is false, since false absorbs whatever the other conjuncts become.
func (s *state) refineAll(effort Effort) bool {
	for {
		s.removed = false
		done := len(s.tables.conjuncts) == 1
		for _, c := range s.tables.conjuncts {
			holds, finished := s.finish(c)
			if !holds {
				return false
			}
			done = done && finished
		}
		if effort == Thorough && !s.removed && !done {
			for _, c := range s.tables.conjuncts {
				if _, refined := c.(refiner); !refined {
					s.probe(c)
				}
			}
		}
		switch {
		case s.Left < 0 || s.Possible.Count() < s.Left:
			return false
		case done || !s.removed || s.exhausted:
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
	possible := s.borrow(s.Possible)
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
	refuted := c.bound(s) == False || s.Possible.Count() < s.Left
	s.unchoose(device)
	return refuted
}

func (s *state) choose(device int) {
	s.Possible.Remove(device)
	s.Chosen.Add(device)
	s.Left--
}

func (s *state) unchoose(device int) {
	s.Left++
	s.Chosen.Remove(device)
	s.Possible.Add(device)
}

func (s *state) remove(device int) {
	s.Possible.Remove(device)
	s.removed = true
}

// require chooses the possible devices of a set, because no completion that is not
// false can do without them.
func (s *state) require(devices bitset.Set) {
	s.Left -= devices.CountAnd(s.Possible)
	for w, word := range devices {
		word &= s.Possible[w]
		s.Possible[w] &^= word
		s.Chosen[w] |= word
		s.required[w] |= word
	}
	s.removed = true
}

// keep removes the devices that are not in the set.
func (s *state) keep(devices bitset.Set) { s.removed = s.Possible.Keep(devices) || s.removed }

// drop removes the devices that are in the set.
func (s *state) drop(devices bitset.Set) { s.removed = s.Possible.Drop(devices) || s.removed }

func (n and) refine(s *state) bool { return s.refine(n.left) && s.refine(n.right) }

// refine: a device is removed if it makes both sides surely false.
func (n or) refine(s *state) bool {
	holds, _ := n.finish(s)
	return holds
}

// finish: with fewer devices a side removes no less. So what a finished side has kept it
// keeps beside the devices that only the other has kept, and removes these again.
func (n or) finish(s *state) (holds, done bool) {
	before := s.borrow(s.Possible)
	removed, hypothetical := s.removed, s.hypothetical
	s.hypothetical = true
	left, leftDone := s.finish(n.left)
	left = left && s.Possible.Count() >= s.Left
	afterLeft := s.borrow(s.Possible)
	s.Possible.SetTo(before)
	right, rightDone := s.finish(n.right)
	right = right && s.Possible.Count() >= s.Left
	switch {
	case left && right:
		s.Possible.Join(afterLeft)
	case left:
		s.Possible.SetTo(afterLeft)
	}
	s.hypothetical = hypothetical
	s.removed = removed || before.Keep(s.Possible)
	s.giveBack(before)
	s.giveBack(afterLeft)
	return left || right, leftDone && rightDone
}
