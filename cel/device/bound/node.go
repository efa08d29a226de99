// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// condition is a part of type bool. What it says holds for every completion of the partial set
// in a state: the package comment has the promise. Besides, it may know how it is propagated ([propagator])
// and what its negation is ([negator]).
type condition interface {
	// bound has at least the results that are possible. It does not change the state.
	bound(s *state) Outcome
}

// negator is a condition that knows one for its negation which propagates better than [not].
type negator interface {
	condition
	// negation is true where the condition is false, false where it is true, and fails where it
	// does.
	negation() condition
}

// quantity is a part of type int.
type quantity interface {
	number(s *state) number
}

// open is a part that is not understood.
type open struct{}

func (open) bound(*state) Outcome { return Open }
func (open) number(*state) number { return openNumber }

// isOpen reports whether a condition or a quantity was not understood.
func isOpen(node any) bool {
	_, is := node.(open)
	return is
}

type constant struct{ value int64 }

func (c constant) number(*state) number { return exactly(c.value) }

type verdict struct{ outcome Outcome }

func (v verdict) bound(*state) Outcome { return v.outcome }

func isVerdict(c condition, outcome Outcome) bool {
	v, is := c.(verdict)
	return is && v.outcome == outcome
}

type not struct{ operand condition }

func (n not) bound(s *state) Outcome { return n.operand.bound(s).not() }

// newNot moves a negation inwards, where it does no harm to propagating: CEL's errors
// follow de Morgan's laws.
func newNot(operand condition) condition {
	if n, ok := operand.(negator); ok {
		return n.negation()
	}
	return not{operand}
}

func (n open) negation() condition    { return n }
func (n verdict) negation() condition { return verdict{n.outcome.not()} }
func (n not) negation() condition     { return n.operand }
func (n and) negation() condition     { return or{newNot(n.left), newNot(n.right)} }
func (n or) negation() condition      { return and{newNot(n.left), newNot(n.right)} }

type and struct{ left, right condition }

func (n and) bound(s *state) Outcome { return n.left.bound(s).and(n.right.bound(s)) }

type or struct{ left, right condition }

func (n or) bound(s *state) Outcome { return n.left.bound(s).or(n.right.bound(s)) }

type conditional struct{ when, yes, no condition }

func (n conditional) bound(s *state) Outcome {
	return n.when.bound(s).choose(n.yes.bound(s), n.no.bound(s))
}

// biconditional is an equality of bools.
type biconditional struct{ left, right condition }

func newBiconditional(left, right condition) condition {
	switch {
	case isOpen(left) || isOpen(right):
		return open{}
	case isVerdict(left, True):
		return right
	case isVerdict(right, True):
		return left
	}
	return biconditional{left, right}
}

func (n biconditional) bound(s *state) Outcome {
	right := n.right.bound(s)
	return n.left.bound(s).choose(right, right.not())
}

func (n biconditional) negation() condition { return biconditional{n.left, newNot(n.right)} }

func (a *analyzer) newConditional(when, yes, no condition) condition {
	switch {
	case isVerdict(when, True):
		return yes
	case isVerdict(when, False):
		return no
	case isOpen(yes) && isOpen(no):
		return open{}
	}
	return conditional{when, yes, no}
}

type conditionalNumber struct {
	when    condition
	yes, no quantity
}

func (n conditionalNumber) number(s *state) number {
	when := n.when.bound(s)
	result := never
	if when.may(True) {
		result = n.yes.number(s)
	}
	if when.may(False) {
		if no := n.no.number(s); when.may(True) {
			result = either(result, no)
		} else {
			result = no
		}
	}
	if when.may(Error) {
		result.fails = true
	}
	return result
}

type comparison struct {
	relation    relation
	left, right quantity
}

func (n comparison) bound(s *state) Outcome {
	return compare(n.relation, n.left.number(s), n.right.number(s))
}

// negate: where one of the two fails, the other does.
func (n comparison) negation() condition {
	switch n.relation {
	case less:
		return comparison{lessOrEqual, n.right, n.left}
	case lessOrEqual:
		return comparison{less, n.right, n.left}
	default:
		return not{n}
	}
}

type arithmetic struct {
	operation   operation
	left, right quantity
}

func (n arithmetic) number(s *state) number {
	return combine(n.left.number(s), n.right.number(s), n.operation)
}

// newArithmetic computes at once what is constant.
func newArithmetic(o operation, left, right quantity) quantity {
	l, constantLeft := left.(constant)
	r, constantRight := right.(constant)
	if constantLeft && constantRight {
		if result := combine(exactly(l.value), exactly(r.value), o); !result.fails {
			return constant{result.least}
		}
	}
	return arithmetic{o, left, right}
}
