// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

type conditionalNumber struct {
	When    propagate.Condition
	Yes, No propagate.Quantity
}

func (n conditionalNumber) Number(s *propagate.State) outcome.Number {
	when := n.When.Bound(s)
	result := outcome.Never
	if when.May(outcome.True) {
		result = n.Yes.Number(s)
	}
	if when.May(outcome.False) {
		if no := n.No.Number(s); when.May(outcome.True) {
			result = outcome.Either(result, no)
		} else {
			result = no
		}
	}
	if when.May(outcome.Error) {
		result.Fails = true
	}
	return result
}

// A Comparison compares two numbers.
type Comparison struct {
	Relation    outcome.Relation
	Left, Right propagate.Quantity
}

// Bound compares the bounds of the two numbers.
func (n Comparison) Bound(s *propagate.State) outcome.Outcome {
	return outcome.Compare(n.Relation, n.Left.Number(s), n.Right.Number(s))
}

// Narrow implements [propagate.Uniform].
func (n Comparison) Narrow(s *propagate.State, device int, to bitset.Set) bool {
	left, ok := n.Left.(propagate.Uniform)
	right, both := n.Right.(propagate.Uniform)
	return ok && both && left.Narrow(s, device, to) && right.Narrow(s, device, to)
}

// Negation returns the opposite comparison if there is one. It fails where the comparison fails.
func (n Comparison) Negation() propagate.Condition {
	switch n.Relation {
	case outcome.Less:
		return Comparison{outcome.LessOrEqual, n.Right, n.Left}
	case outcome.LessOrEqual:
		return Comparison{outcome.Less, n.Right, n.Left}
	default:
		return not{n}
	}
}

type arithmetic struct {
	operation   outcome.Operation
	left, right propagate.Quantity
}

func (n arithmetic) Number(s *propagate.State) outcome.Number {
	return outcome.Combine(n.left.Number(s), n.right.Number(s), n.operation)
}

// NewArithmetic returns the operation on two quantities. If both operands are constant, it returns the constant result.
func NewArithmetic(o outcome.Operation, left, right propagate.Quantity) propagate.Quantity {
	l, constantLeft := left.(Constant)
	r, constantRight := right.(Constant)
	if constantLeft && constantRight {
		if result := outcome.Combine(outcome.Exactly(l.Value), outcome.Exactly(r.Value), o); !result.Fails {
			return Constant{result.Least}
		}
	}
	return arithmetic{o, left, right}
}

// NewConditionalNumber returns CEL's conditional "when ? yes : no" for two numbers.
func NewConditionalNumber(when propagate.Condition, yes, no propagate.Quantity) propagate.Quantity {
	return conditionalNumber{when, yes, no}
}
