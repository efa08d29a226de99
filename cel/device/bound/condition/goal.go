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
		// Propagate supports a conditional of two conditions, but not a comparison of a conditional number.
		yes, no := Above(q.Yes, value), Above(q.No, value)
		switch {
		case isVerdict(yes, outcome.True) && isVerdict(no, outcome.False):
			return q.When
		case isVerdict(yes, outcome.False) && isVerdict(no, outcome.True):
			return NewNot(q.When)
		}
		return c
	case arithmetic:
		// The quantity is a constant minus a count. It is greater than the value if the count is small.
		if of, constantLeft := q.left.(Constant); constantLeft && q.operation.Name == outcome.Subtraction.Name && isCount(q.right) {
			// of.Value is far enough from the smallest int64, so a constant minus a count can't overflow.
			if most, ok := outcome.Subtract(of.Value, value); ok && of.Value > math.MinInt64/2 {
				return ofSearch.WithLimits(Comparison{outcome.Less, q.right, Constant{most}}, q.right, outcome.LimitsOf(outcome.Less, most, false))
			}
		}
		return ofSearch.WithLimits(c, q, outcome.LimitsOf(outcome.Less, value, true))
	default:
		return ofSearch.WithLimits(c, q, outcome.LimitsOf(outcome.Less, value, true))
	}
}

// ofSearch is the Builder for conditions that belong to one search. It is nil.
var ofSearch *Builder

// isCount reports whether a quantity is a number of devices or of values. Such a number is small, so arithmetic can't overflow.
func isCount(q propagate.Quantity) bool {
	switch q.(type) {
	case size, distinctSize, unionSize:
		return true
	default:
		return false
	}
}
