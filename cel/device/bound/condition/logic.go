// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// A Constant is a number that does not depend on devices.
type Constant struct{ Value int64 }

// Number returns the constant.
func (c Constant) Number(*propagate.State) outcome.Number { return outcome.Exactly(c.Value) }

// Narrow implements [propagate.Uniform].
func (c Constant) Narrow(*propagate.State, int, bitset.Set) bool { return true }

type verdict struct{ Outcome outcome.Outcome }

func (v verdict) Bound(*propagate.State) outcome.Outcome { return v.Outcome }

func isVerdict(c propagate.Condition, outcome outcome.Outcome) bool {
	v, is := c.(verdict)
	return is && v.Outcome == outcome
}

type not struct{ operand propagate.Condition }

func (n not) Bound(s *propagate.State) outcome.Outcome { return n.operand.Bound(s).Not() }

func (n verdict) Negation() propagate.Condition { return verdict{n.Outcome.Not()} }
func (n not) Negation() propagate.Condition     { return n.operand }
func (n and) Negation() propagate.Condition     { return or{NewNot(n.left), NewNot(n.right)} }
func (n or) Negation() propagate.Condition      { return and{NewNot(n.left), NewNot(n.right)} }

type and struct{ left, right propagate.Condition }

func (n and) Bound(s *propagate.State) outcome.Outcome { return n.left.Bound(s).And(n.right.Bound(s)) }

type or struct{ left, right propagate.Condition }

func (n or) Bound(s *propagate.State) outcome.Outcome { return n.left.Bound(s).Or(n.right.Bound(s)) }

func (n and) Propagate(s *propagate.State) propagate.Status {
	left := s.Propagate(n.left)
	if left == propagate.Failed {
		return propagate.Failed
	}
	switch right := s.Propagate(n.right); {
	case right == propagate.Failed:
		return propagate.Failed
	case left == propagate.Subsumed && right == propagate.Subsumed:
		return propagate.Subsumed
	default:
		return propagate.NoFix
	}
}

// Propagate propagates each side alone and joins the domains, so it removes a device only if both sides remove it. Propagation
// is monotonic: with fewer possible devices a side never keeps more of them. So a side at its fixpoint also keeps its devices
// in the joined domain, and a second call would remove the same devices.
func (n or) Propagate(s *propagate.State) propagate.Status {
	before := s.Borrow(s.Domain)
	removed, hypothetical := s.Removed, s.Hypothetical
	s.Hypothetical = true
	left := propagateSide(s, n.left, before)
	if left == propagate.Subsumed {
		s.Removed, s.Hypothetical = removed, hypothetical
		s.GiveBack(before)
		return propagate.Subsumed
	}
	afterLeft := s.Borrow(s.Domain)
	s.Domain.SetTo(before)
	right := propagateSide(s, n.right, before)
	switch {
	case left != propagate.Failed && right != propagate.Failed:
		s.Domain.Join(afterLeft)
	case left != propagate.Failed:
		s.Domain.SetTo(afterLeft)
	}
	s.Hypothetical = hypothetical
	s.Removed = removed || before.Keep(s.Domain)
	s.GiveBack(before)
	s.GiveBack(afterLeft)
	switch {
	case left == propagate.Failed && right == propagate.Failed:
		return propagate.Failed
	case right == propagate.Subsumed:
		return propagate.Subsumed
	case left == propagate.NoFix || right == propagate.NoFix:
		return propagate.NoFix
	default:
		return propagate.Fix
	}
}

// propagateSide propagates one side of the disjunction. A side may be always true only after it has removed devices. Then it
// may be false for completions with these devices, so propagateSide returns Fix instead of Subsumed.
func propagateSide(s *propagate.State, c propagate.Condition, before bitset.Set) propagate.Status {
	switch was := s.Propagate(c); {
	case was == propagate.Failed || s.Domain.Count() < s.Left:
		return propagate.Failed
	case was == propagate.Subsumed && !before.IsWithin(s.Domain):
		return propagate.Fix
	default:
		return was
	}
}

type conditional struct{ when, yes, no propagate.Condition }

func (n conditional) Bound(s *propagate.State) outcome.Outcome {
	return n.when.Bound(s).Choose(n.yes.Bound(s), n.no.Bound(s))
}

// A biconditional is an equality of two bools.
type biconditional struct{ left, right propagate.Condition }

// NewBiconditional returns an equality of two bools. If one side is constant, it returns the other side or its negation.
func NewBiconditional(left, right propagate.Condition) propagate.Condition {
	switch {
	case propagate.IsOpen(left) || propagate.IsOpen(right):
		return propagate.Open{}
	case isVerdict(left, outcome.True):
		return right
	case isVerdict(right, outcome.True):
		return left
	}
	return biconditional{left, right}
}

func (n biconditional) Bound(s *propagate.State) outcome.Outcome {
	right := n.right.Bound(s)
	return n.left.Bound(s).Choose(right, right.Not())
}

func (n biconditional) Negation() propagate.Condition { return biconditional{n.left, NewNot(n.right)} }

// NewConditional returns CEL's "when ? yes : no". It simplifies conditionals with constants.
func NewConditional(when, yes, no propagate.Condition) propagate.Condition {
	switch {
	case isVerdict(when, outcome.True):
		return yes
	case isVerdict(when, outcome.False):
		return no
	case propagate.IsOpen(yes) && propagate.IsOpen(no):
		return propagate.Open{}
	}
	return conditional{when, yes, no}
}

// A negator is a condition with a negation that propagates better than [not].
type negator interface {
	propagate.Condition
	// Negation returns the opposite condition: true where this condition is false, false where it is true, failing where it
	// fails.
	Negation() propagate.Condition
}

// NewNot returns the negation of operand. It moves the negation into the operand unless this makes propagation weaker. De
// Morgan's laws also hold for CEL's errors.
func NewNot(operand propagate.Condition) propagate.Condition {
	if n, ok := operand.(negator); ok {
		return n.Negation()
	}
	return not{operand}
}

// NewAnd returns the conjunction without simplifying it.
func NewAnd(left, right propagate.Condition) propagate.Condition { return and{left, right} }

// NewOr returns the disjunction without simplifying it.
func NewOr(left, right propagate.Condition) propagate.Condition { return or{left, right} }

// NewChoice returns CEL's conditional without simplifying it.
func NewChoice(when, yes, no propagate.Condition) propagate.Condition {
	return conditional{when, yes, no}
}

// NewVerdict returns a condition with the same outcome for all sets of devices.
func NewVerdict(is outcome.Outcome) propagate.Condition { return verdict{is} }

// IsTrue reports whether a condition is true for all sets of devices.
func IsTrue(c propagate.Condition) bool { return isVerdict(c, outcome.True) }
