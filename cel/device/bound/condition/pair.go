// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"

	"github.com/celset/celset/cel/device/bound/key"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// identity is the condition d == o on two iteration variables.
type identity struct{ left, right int }

func (n identity) Bound(s *propagate.State) outcome.Outcome {
	return outcome.Of(s.Slots[n.left] == s.Slots[n.right])
}

// localComparison compares values that depend on single devices.
type localComparison struct {
	Comparison
	// whole evaluates the same comparison with CEL, if the values of a side are not tabulated.
	whole propagate.Condition
}

// Negation overrides the promoted method of Comparison, because the promoted method would drop the field whole.
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

// keyOf returns a comparable key of the quantity's value, or nil. Equal values have equal keys.
func keyOf(s *propagate.State, q propagate.Quantity) any {
	if v, ok := q.(propagate.Value); ok {
		return v.Entry(s).Key
	}
	return nil
}

// listRelations maps a CEL function to its implementation for two sorted lists without duplicates. The search runs it for each
// pair of devices, and does not charge its cost.
var listRelations = map[string]func(left, right []any) bool{
	"sets.contains":   func(left, right []any) bool { return common(left, right) == len(right) },
	"sets.equivalent": func(left, right []any) bool { return slices.Equal(left, right) },
	"sets.intersects": func(left, right []any) bool { return common(left, right) > 0 },
}

// common counts the values that both sorted lists contain.
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

// listRelation is a CEL function of two devices' lists, such as lists that intersect.
type listRelation struct {
	left, right propagate.Value
	holds       func(left, right []any) bool
	// whole evaluates the same function with CEL, if the lists are not tabulated.
	whole propagate.Condition
}

func (n listRelation) Bound(s *propagate.State) outcome.Outcome {
	if l, r := n.left.Entry(s).Elements, n.right.Entry(s).Elements; l != nil && r != nil {
		return outcome.Of(n.holds(*l, *r))
	}
	return n.whole.Bound(s)
}

// isIdentity reports whether a condition (or its negation, if negated is set) requires that two variables are the same device.
// If slots are given, the two variables must be among them.
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

// NewLocalComparison returns a comparison of devices' values. The condition evaluates whole if the values of a side are not
// available.
func NewLocalComparison(c Comparison, whole propagate.Condition) propagate.Condition {
	return localComparison{c, whole}
}

// IsListRelation reports whether a function compares the lists of two devices.
func IsListRelation(function string) bool { return listRelations[function] != nil }

// NewListRelation returns the condition that a function of two devices' lists is true. The condition evaluates whole if the
// lists are not available.
func NewListRelation(function string, left, right propagate.Value, whole propagate.Condition) propagate.Condition {
	return listRelation{left, right, listRelations[function], whole}
}
