// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/propagate"
)

import "github.com/celset/celset/cel/device/bound/outcome"

type conditionalNumber struct {
	when    propagate.Condition
	yes, no propagate.Quantity
}

func (n conditionalNumber) Number(s *propagate.State) outcome.Number {
	when := n.when.Bound(s)
	result := outcome.Never
	if when.May(outcome.True) {
		result = n.yes.Number(s)
	}
	if when.May(outcome.False) {
		if no := n.no.Number(s); when.May(outcome.True) {
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

type comparison struct {
	relation    outcome.Relation
	left, right propagate.Quantity
}

func (n comparison) Bound(s *propagate.State) outcome.Outcome {
	return outcome.Compare(n.relation, n.left.Number(s), n.right.Number(s))
}

// negate: where one of the two fails, the other does.
func (n comparison) Negation() propagate.Condition {
	switch n.relation {
	case outcome.Less:
		return comparison{outcome.LessOrEqual, n.right, n.left}
	case outcome.LessOrEqual:
		return comparison{outcome.Less, n.right, n.left}
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

// newArithmetic computes at once what is constant.
func newArithmetic(o outcome.Operation, left, right propagate.Quantity) propagate.Quantity {
	l, constantLeft := left.(constant)
	r, constantRight := right.(constant)
	if constantLeft && constantRight {
		if result := outcome.Combine(outcome.Exactly(l.value), outcome.Exactly(r.value), o); !result.Fails {
			return constant{result.Least}
		}
	}
	return arithmetic{o, left, right}
}
