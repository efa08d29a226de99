// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

import "math"

// above is the condition that a quantity is greater than the value.
func above(q propagate.Quantity, value int64) propagate.Condition {
	c := comparison{outcome.Less, constant{value}, q}
	switch q := q.(type) {
	case propagate.Open:
		return q
	case constant:
		return verdict{outcome.Compare(outcome.Less, outcome.Exactly(value), outcome.Exactly(q.value))}
	case conditionalNumber:
		// What chooses between two numbers can be propagated, a comparison can't.
		yes, no := above(q.yes, value), above(q.no, value)
		switch {
		case isVerdict(yes, outcome.True) && isVerdict(no, outcome.False):
			return q.when
		case isVerdict(yes, outcome.False) && isVerdict(no, outcome.True):
			return newNot(q.when)
		}
		return c
	case arithmetic:
		// The fewer there are of something the better: a value with a minus, or what is left of a constant.
		if of, constantLeft := q.left.(constant); constantLeft && q.operation.Name == outcome.Subtraction.Name && isCount(q.right) {
			// Far from where a difference is more than an int64 has room for.
			if most, ok := outcome.Subtract(of.value, value); ok && of.value > math.MinInt64/2 {
				return ofSearch.withLimits(comparison{outcome.Less, q.right, constant{most}}, q.right, outcome.LimitsOf(outcome.Less, most, false))
			}
		}
		return ofSearch.withLimits(c, q, outcome.LimitsOf(outcome.Less, value, true))
	default:
		return ofSearch.withLimits(c, q, outcome.LimitsOf(outcome.Less, value, true))
	}
}

// ofSearch makes conditions that belong to one search.
var ofSearch *builder

// isCount reports whether a quantity is a number of devices or of values, so that it may be subtracted from any other.
func isCount(q propagate.Quantity) bool {
	switch q.(type) {
	case size, distinctSize, unionSize:
		return true
	default:
		return false
	}
}
