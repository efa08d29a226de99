// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

// condition is a part of type bool.
type condition interface {
	bound(s *state) Outcome
}

// quantity is a part of type int.
type quantity interface {
	number(s *state) number
}

// open is a part that is not understood.
type open struct{}

func (open) bound(*state) Outcome { return Open }
func (open) number(*state) number { return openNumber }

// isOpen tells whether a condition or a quantity was not understood.
func isOpen(node any) bool {
	_, is := node.(open)
	return is
}

func newNot(operand condition) condition {
	if isOpen(operand) {
		return operand
	}
	return not{operand}
}

type constant struct{ value int64 }

func (c constant) number(*state) number { return exactly(c.value) }

type verdict struct{ outcome Outcome }

func (v verdict) bound(*state) Outcome { return v.outcome }

type not struct{ operand condition }

func (n not) bound(s *state) Outcome { return n.operand.bound(s).not() }

type and struct{ left, right condition }

func (n and) bound(s *state) Outcome { return n.left.bound(s).and(n.right.bound(s)) }

type or struct{ left, right condition }

func (n or) bound(s *state) Outcome { return n.left.bound(s).or(n.right.bound(s)) }

type conditional struct{ when, yes, no condition }

func (n conditional) bound(s *state) Outcome {
	return n.when.bound(s).choose(n.yes.bound(s), n.no.bound(s))
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

type arithmetic struct {
	function    func(x, y int64) (int64, bool)
	left, right quantity
}

func (n arithmetic) number(s *state) number {
	return combine(n.left.number(s), n.right.number(s), n.function)
}
