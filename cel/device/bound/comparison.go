// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import "github.com/celset/celset/cel/device/bound/outcome"

type conditionalNumber struct {
	when    condition
	yes, no quantity
}

func (n conditionalNumber) number(s *state) outcome.Number {
	when := n.when.bound(s)
	result := outcome.Never
	if when.May(outcome.True) {
		result = n.yes.number(s)
	}
	if when.May(outcome.False) {
		if no := n.no.number(s); when.May(outcome.True) {
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
	left, right quantity
}

func (n comparison) bound(s *state) outcome.Outcome {
	return outcome.Compare(n.relation, n.left.number(s), n.right.number(s))
}

// negate: where one of the two fails, the other does.
func (n comparison) negation() condition {
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
	left, right quantity
}

func (n arithmetic) number(s *state) outcome.Number {
	return outcome.Combine(n.left.number(s), n.right.number(s), n.operation)
}

// newArithmetic computes at once what is constant.
func newArithmetic(o outcome.Operation, left, right quantity) quantity {
	l, constantLeft := left.(constant)
	r, constantRight := right.(constant)
	if constantLeft && constantRight {
		if result := outcome.Combine(outcome.Exactly(l.value), outcome.Exactly(r.value), o); !result.Fails {
			return constant{result.Least}
		}
	}
	return arithmetic{o, left, right}
}
