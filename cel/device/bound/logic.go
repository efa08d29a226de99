// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/outcome"
)

import "github.com/celset/celset/cel/device/bitset"

type constant struct{ value int64 }

func (c constant) number(*state) outcome.Number { return outcome.Exactly(c.value) }

type verdict struct{ outcome outcome.Outcome }

func (v verdict) bound(*state) outcome.Outcome { return v.outcome }

func isVerdict(c condition, outcome outcome.Outcome) bool {
	v, is := c.(verdict)
	return is && v.outcome == outcome
}

type not struct{ operand condition }

func (n not) bound(s *state) outcome.Outcome { return n.operand.bound(s).Not() }

func (n verdict) negation() condition { return verdict{n.outcome.Not()} }

func (n not) negation() condition { return n.operand }

func (n and) negation() condition { return or{newNot(n.left), newNot(n.right)} }

func (n or) negation() condition { return and{newNot(n.left), newNot(n.right)} }

type and struct{ left, right condition }

func (n and) bound(s *state) outcome.Outcome { return n.left.bound(s).And(n.right.bound(s)) }

type or struct{ left, right condition }

func (n or) bound(s *state) outcome.Outcome { return n.left.bound(s).Or(n.right.bound(s)) }

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
	left := propagateSide(s, n.left, before)
	if left == subsumed {
		s.removed, s.hypothetical = removed, hypothetical
		s.giveBack(before)
		return subsumed
	}
	afterLeft := s.borrow(s.Domain)
	s.Domain.SetTo(before)
	right := propagateSide(s, n.right, before)
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
func propagateSide(s *state, c condition, before bitset.Set) status {
	switch was := s.propagate(c); {
	case was == failed || s.Domain.Count() < s.Left:
		return failed
	case was == subsumed && !before.IsWithin(s.Domain):
		return fix
	default:
		return was
	}
}

type conditional struct{ when, yes, no condition }

func (n conditional) bound(s *state) outcome.Outcome {
	return n.when.bound(s).Choose(n.yes.bound(s), n.no.bound(s))
}

// biconditional is an equality of bools.
type biconditional struct{ left, right condition }

func newBiconditional(left, right condition) condition {
	switch {
	case isOpen(left) || isOpen(right):
		return open{}
	case isVerdict(left, outcome.True):
		return right
	case isVerdict(right, outcome.True):
		return left
	}
	return biconditional{left, right}
}

func (n biconditional) bound(s *state) outcome.Outcome {
	right := n.right.bound(s)
	return n.left.bound(s).Choose(right, right.Not())
}

func (n biconditional) negation() condition { return biconditional{n.left, newNot(n.right)} }

func newConditional(when, yes, no condition) condition {
	switch {
	case isVerdict(when, outcome.True):
		return yes
	case isVerdict(when, outcome.False):
		return no
	case isOpen(yes) && isOpen(no):
		return open{}
	}
	return conditional{when, yes, no}
}

// negator is a condition that knows one for its negation which propagates better than [not].
type negator interface {
	condition
	// negation is true where the condition is false, false where it is true, and fails where it
	// does.
	negation() condition
}

// newNot moves a negation inwards, where it does no harm to propagating: CEL's errors
// follow de Morgan's laws.
func newNot(operand condition) condition {
	if n, ok := operand.(negator); ok {
		return n.negation()
	}
	return not{operand}
}
