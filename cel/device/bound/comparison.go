// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

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
