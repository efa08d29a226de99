// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"

	"github.com/celset/celset/cel/device"
)

// A preference is an expression of type int: a set is the better the greater its value is. A search
// that has found a set asks for a better one, and that is a condition as any other: the value is
// above that of the best set so far. It becomes narrower with each set that is found, while what the
// expression says of devices stays the same. So the tables belong to the analysis of the value, and
// the condition to the bounds of one search.

// AnalyzeGoal reads an expression of type int, for sets of the given size. Its bounds know no
// condition until they are told of one by [Bounds.Exceed]. ascending is for sets as those of
// [AnalyzeAscending].
func AnalyzeGoal(expression *device.Expression, size int, ascending bool) *Analysis {
	a := newAnalyzer(expression, size)
	a.ascending = ascending
	expr := expression.AST().Expr()
	a.normal.require(expr, scope{})
	result := &Analysis{expression: expression, size: size, ascending: ascending, goal: a.quantity(expr, scope{})}
	a.finish(result)
	return result
}

// Exceed has sets satisfy the condition that their value is above the given one, in place of what
// Exceed was told before. The bounds are of an analysis of [AnalyzeGoal].
func (b *Bounds) Exceed(value int64) {
	b.state.conjuncts = []condition{above(b.state.tables.goal, value)}
}

// Most returns what the value of no completion exceeds, and [math.MaxInt64] if that is not known. The bounds
// are of an analysis of [AnalyzeGoal].
func (b *Bounds) Most(p Partial) int64 {
	s := &b.state
	if !s.begin(p) {
		return math.MaxInt64
	}
	n := s.tables.goal.number(s)
	if n.open || !s.isSound() {
		return math.MaxInt64
	}
	return n.most
}

// above is the condition that a quantity is greater than the value.
func above(q quantity, value int64) condition {
	c := comparison{less, constant{value}, q}
	switch q := q.(type) {
	case open:
		return q
	case constant:
		return verdict{compare(less, exactly(value), exactly(q.value))}
	case conditionalNumber:
		// What chooses between two numbers can be propagated, a comparison can't.
		yes, no := above(q.yes, value), above(q.no, value)
		switch {
		case isVerdict(yes, True) && isVerdict(no, False):
			return q.when
		case isVerdict(yes, False) && isVerdict(no, True):
			return newNot(q.when)
		}
		return c
	case arithmetic:
		// The fewer there are of something the better: a value with a minus, or what is left of a constant.
		if of, constantLeft := q.left.(constant); constantLeft && q.operation.name == subtraction.name && isCount(q.right) {
			// Far from where a difference is more than an int64 has room for.
			if most, ok := subtract(of.value, value); ok && of.value > math.MinInt64/2 {
				return noAnalyzer.withLimits(comparison{less, q.right, constant{most}}, q.right, limitsOf(less, most, false))
			}
		}
		return noAnalyzer.withLimits(c, q, limitsOf(less, value, true))
	default:
		return noAnalyzer.withLimits(c, q, limitsOf(less, value, true))
	}
}

// noAnalyzer makes conditions that belong to one search.
var noAnalyzer *analyzer

// isCount reports whether a quantity is a number of devices or of values, so that it may be subtracted from any other.
func isCount(q quantity) bool {
	switch q.(type) {
	case size, distinctSize, unionSize:
		return true
	default:
		return false
	}
}
