// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// join returns one constraint for two constraints on the bounding box, on gaps or on a sum. It returns false for other
// conditions.
func (b *Builder) join(left, right propagate.Condition) (propagate.Condition, bool) {
	if joined, ok := b.joinBoxes(left, right); ok {
		return joined, true
	}
	if l, ok := left.(assuming); ok {
		if r, both := right.(assuming); both {
			if then, ok := b.join(l.then, r.then); ok {
				return assuming{together(l.premise, r.premise), then, and{l.general, r.general}}, true
			}
		}
		if then, ok := b.join(l.then, right); ok {
			return assuming{l.premise, then, and{l.general, right}}, true
		}
		return nil, false
	}
	if r, ok := right.(assuming); ok {
		if then, ok := b.join(left, r.then); ok {
			return assuming{r.premise, then, and{left, r.general}}, true
		}
		return nil, false
	}
	if joined, ok := joinSpacings(left, right); ok {
		return joined, true
	}
	return joinSums(left, right)
}

// WithConjunct appends c to conjuncts. If c and an earlier conjunct constrain the bounding box, gaps or the same sum, it joins
// the two.
func (b *Builder) WithConjunct(conjuncts []propagate.Condition, c propagate.Condition) []propagate.Condition {
	for i := range conjuncts {
		if joined, ok := b.join(conjuncts[i], c); ok {
			conjuncts[i] = joined
			return conjuncts
		}
	}
	return append(conjuncts, c)
}

// NewAnd returns a conjunction. It simplifies constants, and joins two constraints into one if possible.
func (b *Builder) NewAnd(left, right propagate.Condition) propagate.Condition {
	switch {
	case propagate.IsOpen(left) && propagate.IsOpen(right):
		return propagate.Open{}
	case isVerdict(left, outcome.True), isVerdict(right, outcome.False):
		return right
	case isVerdict(right, outcome.True), isVerdict(left, outcome.False):
		return left
	}
	if joined, ok := b.join(left, right); ok {
		return joined
	}
	return and{left, right}
}

// NewOr returns a disjunction. It simplifies constants.
func (b *Builder) NewOr(left, right propagate.Condition) propagate.Condition {
	switch {
	case propagate.IsOpen(left) && propagate.IsOpen(right):
		return propagate.Open{}
	case isVerdict(left, outcome.False), isVerdict(right, outcome.True):
		return right
	case isVerdict(right, outcome.False), isVerdict(left, outcome.True):
		return left
	}
	if simpler, ok := withoutFailure(left, right); ok {
		return simpler
	}
	return or{left, right}
}
