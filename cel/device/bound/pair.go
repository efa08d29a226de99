// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/key"
	"github.com/celset/celset/cel/device/bound/outcome"
)

import "slices"

// identity is d == o.
type identity struct{ left, right int }

func (n identity) bound(s *state) outcome.Outcome {
	return outcome.Of(s.slots[n.left] == s.slots[n.right])
}

// localComparison compares something about two devices or more.
type localComparison struct {
	comparison
	// whole asks CEL.
	whole condition
}

// negation is not that of the comparison, which knows nothing of the whole.
func (n localComparison) negation() condition { return not{n} }

func (n localComparison) bound(s *state) outcome.Outcome {
	left, right := n.left.number(s), n.right.number(s)
	if !left.Open && !right.Open {
		return outcome.Compare(n.relation, left, right)
	}
	if l, r := keyOf(s, n.left), keyOf(s, n.right); n.relation == outcome.Equal && l != nil && r != nil {
		return outcome.Of(l == r)
	}
	return n.whole.bound(s)
}

// keyOf is equal for equal values of the quantity, nil if that can't be told.
func keyOf(s *state, q quantity) any {
	if v, ok := q.(value); ok {
		return v.entry(s).key
	}
	return nil
}

// listRelations are functions on two lists, on the different values in them in order. They are asked for each pair of devices, and
// nobody is charged.
var listRelations = map[string]func(left, right []any) bool{
	"sets.contains":   func(left, right []any) bool { return common(left, right) == len(right) },
	"sets.equivalent": func(left, right []any) bool { return slices.Equal(left, right) },
	"sets.intersects": func(left, right []any) bool { return common(left, right) > 0 },
}

// common counts the values that are in both lists.
func common(left, right []any) (count int) {
	for len(left) > 0 && len(right) > 0 {
		switch order := key.Compare(left[0], right[0]); {
		case order < 0:
			left = left[1:]
		case order > 0:
			right = right[1:]
		default:
			left, right = left[1:], right[1:]
			count++
		}
	}
	return count
}

// listRelation is a function on the lists of two devices.
type listRelation struct {
	left, right value
	holds       func(left, right []any) bool
	// whole asks CEL.
	whole condition
}

func (n listRelation) bound(s *state) outcome.Outcome {
	if l, r := n.left.entry(s).elements, n.right.entry(s).elements; l != nil && r != nil {
		return outcome.Of(n.holds(*l, *r))
	}
	return n.whole.bound(s)
}

// isIdentity reports whether a condition is that two variables stand for the same device. If slots are given, the variables are
// among them.
func isIdentity(c condition, negated bool, slots ...int) bool {
	switch c := c.(type) {
	case identity:
		among := len(slots) == 0 || slices.Contains(slots, c.left) && slices.Contains(slots, c.right)
		return !negated && among && c.left != c.right
	case not:
		return isIdentity(c.operand, !negated, slots...)
	default:
		return false
	}
}
