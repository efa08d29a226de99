// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// LinearComparison converts a comparison of two linear sums to limits of one quantity, of a distance, or of a sum. It returns
// false for other comparisons.
func (b *Builder) LinearComparison(c Comparison) (propagate.Condition, bool) {
	terms, l, ok := linearLimits(c)
	if !ok {
		return nil, false
	}
	var present Premise
	rest := make([]term, 0, len(terms))
	for _, t := range terms {
		leaf, ok := valuesOfAll(t.of)
		if !ok {
			rest = append(rest, t)
			continue
		}
		shift := -t.factor * int64(b.SetSize)
		l = outcome.Limits{Least: l.Least + shift, Most: l.Most + shift}.OrUnlimited(l)
		present = together(present, behaves{leaf, propagate.Failing})
	}
	is, ok := b.ofTerms(rest, l, c)
	if ok && present != nil {
		return assuming{present, is, c}, true
	}
	return is, ok
}

// valuesOfAll recognizes the size of a list with one value for each device of the set, and returns the leaf of the values. The
// size is constant unless a value fails.
func valuesOfAll(q propagate.Quantity) (*propagate.Leaf, bool) {
	n, ok := q.(size)
	if !ok {
		return nil, false
	}
	values, ok := n.list.(valued)
	if !ok {
		return nil, false
	}
	return values.Column()
}

// ofTerms returns the condition that a sum of terms is within limits. It returns false for terms without such a condition.
func (b *Builder) ofTerms(terms []term, l outcome.Limits, c Comparison) (propagate.Condition, bool) {
	if len(terms) == 1 && isCount(terms[0].of) {
		return b.WithLimits(c, terms[0].of, l.Divide(terms[0].factor)), true
	}
	if leaf, factor, ok := distanceIn(terms); ok {
		return assuming{behaves{leaf, propagate.Far}, b.newSpan(leaf, l.Divide(factor), c), oneValueIn(leaf, l, c)}, true
	}
	return b.newSum(terms, l, modulus{}, c)
}

// oneValueIn returns the condition that the greatest and the smallest value are equal, for values of any ordered type. It
// returns general for other distances. It also returns general for a comparison with arithmetic, such as max == min + 0,
// because the comparison fails unless the values are numbers.
func oneValueIn(l *propagate.Leaf, distance outcome.Limits, general Comparison) propagate.Condition {
	_, left := general.Left.(greatest)
	_, right := general.Right.(greatest)
	if !left || !right || distance != (outcome.Limits{Least: 0, Most: 0}) {
		return general
	}
	one := Comparison{outcome.Equal, distinctSize{l, AllDevices{}}, Constant{1}}
	return assuming{sorted{l}, one, general}
}

// distanceIn recognizes "factor*max - factor*min" of one column, and returns the column's leaf and the factor.
func distanceIn(terms []term) (l *propagate.Leaf, factor int64, ok bool) {
	if len(terms) != 2 || terms[0].factor != -terms[1].factor || terms[0].factor == 0 {
		return nil, 0, false
	}
	for i := range terms {
		if l, ok := spanOf(arithmetic{outcome.Subtraction, terms[i].of, terms[1-i].of}); ok {
			return l, terms[i].factor, true
		}
	}
	return nil, 0, false
}
