// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"math"

	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// Above returns the condition that a quantity is greater than the value.
func Above(q propagate.Quantity, value int64) propagate.Condition {
	c := Comparison{outcome.Less, Constant{value}, q}
	switch q := q.(type) {
	case propagate.Open:
		return q
	case Constant:
		return verdict{outcome.Compare(outcome.Less, outcome.Exactly(value), outcome.Exactly(q.Value))}
	case conditionalNumber:
		// The condition of a choice between two numbers can be propagated, but a comparison of the choice can't.
		yes, no := Above(q.Yes, value), Above(q.No, value)
		switch {
		case isVerdict(yes, outcome.True) && isVerdict(no, outcome.False):
			return q.When
		case isVerdict(yes, outcome.False) && isVerdict(no, outcome.True):
			return NewNot(q.When)
		}
		return c
	case arithmetic:
		// The quantity is a constant minus a count, so a small count is preferred.
		if of, constantLeft := q.left.(Constant); constantLeft && q.operation.Name == outcome.Subtraction.Name && isCount(q.right) {
			// The constant is far enough from the smallest int64, so a difference can't overflow.
			if most, ok := outcome.Subtract(of.Value, value); ok && of.Value > math.MinInt64/2 {
				return ofSearch.WithLimits(Comparison{outcome.Less, q.right, Constant{most}}, q.right, outcome.LimitsOf(outcome.Less, most, false))
			}
		}
		return ofSearch.WithLimits(c, q, outcome.LimitsOf(outcome.Less, value, true))
	default:
		return ofSearch.WithLimits(c, q, outcome.LimitsOf(outcome.Less, value, true))
	}
}

// ofSearch is nil, because a nil Builder makes conditions that belong to one search.
var ofSearch *Builder

// isCount reports whether a quantity is a number of devices or of values. Such a number is never far from zero.
func isCount(q propagate.Quantity) bool {
	switch q.(type) {
	case size, distinctSize, unionSize:
		return true
	default:
		return false
	}
}
