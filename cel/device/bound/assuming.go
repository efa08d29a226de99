// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bound/outcome"

// assuming is a condition that is simpler as long as a premise holds for all devices that are chosen or possible: that no
// value fails, or that no sum of the values overflows.
type assuming struct {
	premise       premise
	then, general condition
}

// premise is what a simpler condition assumes.
type premise interface {
	// holds reports whether the premise holds for the devices that are chosen or possible.
	holds(s *state) bool
}

// behaves is the premise that a leaf does not misbehave for any of the devices.
type behaves struct {
	leaf *leaf
	against
}

func (p behaves) holds(s *state) bool {
	c := s.column(p.leaf)
	return c != nil && !c.misbehaviour[p.against].Meets(s.Chosen) && (s.Left <= 0 || !c.misbehaviour[p.against].Meets(s.Domain))
}

// exact is the premise that a predicate is either true or false for any two of the devices.
type exact struct{ predicate *predicate }

func (p exact) holds(s *state) bool { return p.predicate.isSettled(s) }

// sorted is the premise that all values of a leaf are of one type that has an order.
type sorted struct{ leaf *leaf }

func (p sorted) holds(s *state) bool {
	c := s.column(p.leaf)
	return c != nil && c.groups.sorted && s.areWithin(c.groups.known)
}

// hasKeys is the premise that all values of a leaf are ints, strings or bools.
type hasKeys struct{ leaf *leaf }

func (p hasKeys) holds(s *state) bool {
	c := s.column(p.leaf)
	return c != nil && s.areWithin(c.groups.known)
}

// different is the premise that no two devices have the same value of a leaf.
type different struct{ leaf *leaf }

func (p different) holds(s *state) bool {
	c := s.column(p.leaf)
	if c == nil || !s.areWithin(c.groups.known) {
		return false
	}
	for _, with := range c.groups.members {
		if chosen, possible := s.countsOf(with); chosen+possible > 1 {
			return false
		}
	}
	return true
}

// bothHold is the premise that two premises hold.
type bothHold [2]premise

func (p bothHold) holds(s *state) bool { return p[0].holds(s) && p[1].holds(s) }

// together is the premise that both hold, of which one may be nil.
func together(p, q premise) premise {
	if p == nil || p == q {
		return q
	}
	return bothHold{p, q}
}

func (n assuming) choose(s *state) condition {
	if n.premise.holds(s) {
		return n.then
	}
	return n.general
}

func (n assuming) bound(s *state) outcome.Outcome { return n.choose(s).bound(s) }

func (n assuming) negation() condition {
	return assuming{n.premise, newNot(n.then), newNot(n.general)}
}

func (n assuming) propagate(s *state) status { return s.propagate(n.choose(s)) }

// raised moves the premise of a condition on one device of the set to the outside of what is built from it. A premise does not
// depend on the device. It is false if the condition has none, or is for another list than all devices.
func raised(list deviceList, holds, general condition, build func(then condition) condition) (condition, bool) {
	n, ok := holds.(assuming)
	if _, all := list.(allDevices); !ok || !all {
		return nil, false
	}
	return assuming{n.premise, build(n.then), general}, true
}

// withoutFailure recognizes "left || fails", where fails is never true but may fail.
func withoutFailure(left, fails condition) (condition, bool) {
	p, ok := fails.(*predicate)
	if !ok || p.negated {
		return nil, false
	}
	c, ok := p.holds.(conditional)
	if !ok || !isVerdict(c.yes, outcome.False) || !isVerdict(c.no, outcome.False) {
		return nil, false
	}
	when, ok := c.when.(value)
	if !ok || len(when.slots) > 1 {
		return nil, false
	}
	return assuming{behaves{when.leaf, failing}, left, or{left, fails}}, true
}
