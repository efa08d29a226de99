// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/key"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// identity is d == o.
type identity struct{ left, right int }

func (n identity) Bound(s *propagate.State) outcome.Outcome {
	return outcome.Of(s.Slots[n.left] == s.Slots[n.right])
}

// localComparison compares values of two or more devices.
type localComparison struct {
	Comparison
	// whole evaluates the comparison with CEL.
	whole propagate.Condition
}

// Negation does not negate the embedded Comparison, because the result would lack the field whole.
func (n localComparison) Negation() propagate.Condition { return not{n} }

func (n localComparison) Bound(s *propagate.State) outcome.Outcome {
	left, right := n.Left.Number(s), n.Right.Number(s)
	if !left.Open && !right.Open {
		return outcome.Compare(n.Relation, left, right)
	}
	if l, r := keyOf(s, n.Left), keyOf(s, n.Right); n.Relation == outcome.Equal && l != nil && r != nil {
		return outcome.Of(l == r)
	}
	return n.whole.Bound(s)
}

// keyOf returns the key of the quantity's value, or nil. Keys are equal for equal values.
func keyOf(s *propagate.State, q propagate.Quantity) any {
	if v, ok := q.(propagate.Value); ok {
		return v.Entry(s).Key
	}
	return nil
}

// listRelations are functions on two sorted lists without duplicates. They run for each pair of devices and are not charged.
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
	// whole evaluates the function with CEL.
	whole propagate.Condition
}

func (n listRelation) Bound(s *propagate.State) outcome.Outcome {
	if l, r := n.left.Entry(s).Elements, n.right.Entry(s).Elements; l != nil && r != nil {
		return outcome.Of(n.holds(*l, *r))
	}
	return n.whole.Bound(s)
}

// isIdentity reports whether a condition requires that two variables have the same device. If slots are given, they must include
// both variables.
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

// NewIdentity returns the condition that two variables have the same device.
func NewIdentity(left, right int) propagate.Condition { return identity{left, right} }

// NewLocalComparison compares values of devices. It uses whole if the values of the two sides are not available.
func NewLocalComparison(c Comparison, whole propagate.Condition) propagate.Condition {
	return localComparison{c, whole}
}

// IsListRelation reports whether a function compares the lists of two devices.
func IsListRelation(function string) bool { return listRelations[function] != nil }

// NewListRelation returns the condition that a function of the lists of two devices is true. It uses whole if the lists are not
// available.
func NewListRelation(function string, left, right propagate.Value, whole propagate.Condition) propagate.Condition {
	return listRelation{left, right, listRelations[function], whole}
}
