// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// assuming is a condition with two forms: then is simpler, but valid only if a premise holds for all chosen and possible
// devices. For example, the premise is that no value fails, or that no sum overflows. general is always valid.
type assuming struct {
	premise       Premise
	then, general propagate.Condition
}

// A Premise is an assumption about the chosen and possible devices. If the premise holds, a simpler form of a condition is
// valid.
type Premise interface {
	// holds reports whether the premise holds for the chosen and possible devices.
	holds(s *propagate.State) bool
}

// behaves is the premise that the value of a leaf is regular for every chosen and possible device. Against names the
// irregularity that is excluded, such as failing.
type behaves struct {
	leaf *propagate.Leaf
	propagate.Against
}

func (p behaves) holds(s *propagate.State) bool {
	c := s.Column(p.leaf)
	return c != nil && !c.Misbehaviour[p.Against].Meets(s.Chosen) && (s.Left <= 0 || !c.Misbehaviour[p.Against].Meets(s.Domain))
}

// exact is the premise that a predicate is decided (either true or false) for every pair of chosen and possible devices.
type exact struct{ predicate *propagate.Predicate }

func (p exact) holds(s *propagate.State) bool { return p.predicate.IsSettled(s) }

// sorted is the premise that all values of a leaf have the same ordered type.
type sorted struct{ leaf *propagate.Leaf }

func (p sorted) holds(s *propagate.State) bool {
	c := s.Column(p.leaf)
	return c != nil && c.Groups.Sorted && s.AreWithin(c.Groups.Known)
}

// hasKeys is the premise that the values of a leaf are comparable, such as ints, strings or bools, for all devices.
type hasKeys struct{ leaf *propagate.Leaf }

func (p hasKeys) holds(s *propagate.State) bool {
	c := s.Column(p.leaf)
	return c != nil && s.AreWithin(c.Groups.Known)
}

// different is the premise that no two devices have the same value of a leaf.
type different struct{ leaf *propagate.Leaf }

func (p different) holds(s *propagate.State) bool {
	c := s.Column(p.leaf)
	if c == nil || !s.AreWithin(c.Groups.Known) {
		return false
	}
	for _, with := range c.Groups.Members {
		if chosen, possible := s.CountsOf(with); chosen+possible > 1 {
			return false
		}
	}
	return true
}

// bothHold is the conjunction of two premises.
type bothHold [2]Premise

func (p bothHold) holds(s *propagate.State) bool { return p[0].holds(s) && p[1].holds(s) }

// together returns the conjunction of two premises, or q if p is nil.
func together(p, q Premise) Premise {
	if p == nil || p == q {
		return q
	}
	return bothHold{p, q}
}

func (n assuming) choose(s *propagate.State) propagate.Condition {
	if n.premise.holds(s) {
		return n.then
	}
	return n.general
}

func (n assuming) Bound(s *propagate.State) outcome.Outcome { return n.choose(s).Bound(s) }

func (n assuming) Negation() propagate.Condition {
	return assuming{n.premise, NewNot(n.then), NewNot(n.general)}
}

func (n assuming) Propagate(s *propagate.State) propagate.Status { return s.Propagate(n.choose(s)) }

// liftPremise reads list.all(x, holds) or a similar quantifier. If holds is assuming{premise, then}, it returns
// assuming{premise, build(then)}, because a premise does not depend on the device x. It returns false if holds has no premise
// or the list is not all devices.
func liftPremise(list DeviceList, holds, general propagate.Condition, build func(then propagate.Condition) propagate.Condition) (propagate.Condition, bool) {
	n, ok := holds.(assuming)
	if _, all := list.(AllDevices); !ok || !all {
		return nil, false
	}
	return assuming{n.premise, build(n.then), general}, true
}

// withoutFailure recognizes "left || fails", where fails is an expression that can be false or an error, but never true. If the
// expression fails for no device, the disjunction is left.
func withoutFailure(left, fails propagate.Condition) (propagate.Condition, bool) {
	p, ok := fails.(*propagate.Predicate)
	if !ok || p.Negated {
		return nil, false
	}
	c, ok := p.Holds.(conditional)
	if !ok || !isVerdict(c.yes, outcome.False) || !isVerdict(c.no, outcome.False) {
		return nil, false
	}
	when, ok := c.when.(propagate.Value)
	if !ok || len(when.Slots) > 1 {
		return nil, false
	}
	return assuming{behaves{when.Leaf, propagate.Failing}, left, or{left, fails}}, true
}

// NewAssuming returns a condition that evaluates then if the premise holds for the partial set, and general otherwise.
func NewAssuming(p Premise, then, general propagate.Condition) propagate.Condition {
	return assuming{p, then, general}
}

// Behaves returns the premise that no value of a leaf shows the given irregularity, such as failing.
func Behaves(l *propagate.Leaf, how propagate.Against) Premise { return behaves{l, how} }

// IsExact returns the premise that a predicate is decided (either true or false) for all devices.
func IsExact(p *propagate.Predicate) Premise { return exact{p} }

// HasKeys returns the premise that all values of a leaf are comparable.
func HasKeys(l *propagate.Leaf) Premise { return hasKeys{l} }
