// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/key"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

import "slices"

// identity is d == o.
type identity struct{ left, right int }

func (n identity) Bound(s *propagate.State) outcome.Outcome {
	return outcome.Of(s.Slots[n.left] == s.Slots[n.right])
}

// localComparison compares something about two devices or more.
type localComparison struct {
	comparison
	// whole asks CEL.
	whole propagate.Condition
}

// negation is not that of the comparison, which knows nothing of the whole.
func (n localComparison) Negation() propagate.Condition { return not{n} }

func (n localComparison) Bound(s *propagate.State) outcome.Outcome {
	left, right := n.left.Number(s), n.right.Number(s)
	if !left.Open && !right.Open {
		return outcome.Compare(n.relation, left, right)
	}
	if l, r := keyOf(s, n.left), keyOf(s, n.right); n.relation == outcome.Equal && l != nil && r != nil {
		return outcome.Of(l == r)
	}
	return n.whole.Bound(s)
}

// keyOf is equal for equal values of the quantity, nil if that can't be told.
func keyOf(s *propagate.State, q propagate.Quantity) any {
	if v, ok := q.(propagate.Value); ok {
		return v.Entry(s).Key
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
	left, right propagate.Value
	holds       func(left, right []any) bool
	// whole asks CEL.
	whole propagate.Condition
}

func (n listRelation) Bound(s *propagate.State) outcome.Outcome {
	if l, r := n.left.Entry(s).Elements, n.right.Entry(s).Elements; l != nil && r != nil {
		return outcome.Of(n.holds(*l, *r))
	}
	return n.whole.Bound(s)
}

// isIdentity reports whether a condition is that two variables stand for the same device. If slots are given, the variables are
// among them.
func isIdentity(c propagate.Condition, negated bool, slots ...int) bool {
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
