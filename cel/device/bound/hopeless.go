// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

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

// refine removes what can be removed at low cost.
func (s *state) refine(c condition) bool {
	if r, ok := c.(refiner); ok {
		return r.refine(s)
	}
	return c.bound(s) != False
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
// fail. It removes devices from p.Possible that are in no other completions.
func (b *Bounds) Hopeless(p Partial, effort Effort) bool {
	s := &b.state
	if !s.begin(p) {
		return false
	}
	b.before.Set(p.Possible)
	hopeless := !s.refineAll(effort)
	if !s.isSound() {
		p.Possible.Set(b.before)
		return false
	}
	return hopeless
}

// refineAll goes on until nothing more can be removed. A completion with a removed
// device is false, since false absorbs whatever the other conjuncts become.
func (s *state) refineAll(effort Effort) bool {
	for {
		s.removed = false
		for _, c := range s.tables.conjuncts {
			if !s.refine(c) {
				return false
			}
		}
		if effort == Thorough && !s.removed {
			for _, c := range s.tables.conjuncts {
				if _, refined := c.(refiner); !refined {
					s.probe(c)
				}
			}
		}
		switch {
		case s.Possible.Count() < s.Left:
			return false
		case !s.removed || s.exhausted:
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
	possible.each(func(i int) bool {
		if s.isRefutedBy(c, i) {
			s.remove(i)
		}
		return true
	})
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

// keep removes the devices that are not in the set.
func (s *state) keep(devices Bits) { s.removed = s.Possible.Keep(devices) || s.removed }

// drop removes the devices that are in the set.
func (s *state) drop(devices Bits) { s.removed = s.Possible.Drop(devices) || s.removed }

func (n and) refine(s *state) bool { return s.refine(n.left) && s.refine(n.right) }

// refine: a device is removed if it makes both sides surely false.
func (n or) refine(s *state) bool {
	before := s.borrow(s.Possible)
	removed := s.removed
	left := s.refine(n.left) && s.Possible.Count() >= s.Left
	afterLeft := s.borrow(s.Possible)
	s.Possible.Set(before)
	right := s.refine(n.right) && s.Possible.Count() >= s.Left
	switch {
	case left && right:
		s.Possible.Join(afterLeft)
	case left:
		s.Possible.Set(afterLeft)
	}
	s.removed = removed || before.Keep(s.Possible)
	s.giveBack(before)
	s.giveBack(afterLeft)
	return left || right
}
