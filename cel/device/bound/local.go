// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// A part that speaks of two devices could be tabulated as a whole, at the price of
// asking CEL once for each pair. Most such parts compare something about the one
// device with something about the other: CEL is asked for these, once for each
// device, and the comparison is made here. Where it is not one of ints, strings or
// bools, CEL is asked for the pair after all.

// local reads what speaks of single devices: no quantifiers, and a leaf where nothing else fits.
type local struct{ analyzer *analyzer }

func (l local) condition(expr ast.Expr, s scope) condition {
	if !l.analyzer.mayRead() {
		return open{}
	}
	if !speaksOfOne(expr, s) {
		expr = l.analyzer.normal.reduce(expr, s)
		if left, right, ok := sameness(expr); ok {
			return l.comparison(expr, equal, left, right, s)
		}
		if result, ok := l.listRelation(expr, s); ok {
			return result
		}
		if rewritten, ok := l.analyzer.normal.rewrite(expr, s); ok {
			return l.condition(rewritten, s)
		}
	}
	if result, ok := readCondition(l, expr, s); ok {
		return result
	}
	if value, ok := tree.Literal[types.Bool](expr); ok {
		return verdict{outcomeOf(bool(value))}
	}
	return l.value(expr, s)
}

func (l local) newAnd(left, right condition) condition { return and{left, right} }

func (l local) newOr(left, right condition) condition { return or{left, right} }

func (l local) newConditional(when, yes, no condition) condition { return conditional{when, yes, no} }

// value is the part as a leaf. It is open if it speaks of too many devices.
func (l local) value(expr ast.Expr, s scope) condition {
	free, single := references(expr, s)
	if !single || len(free) > maxArity {
		return open{}
	}
	return l.analyzer.valueOf(expr, free)
}

func (a *analyzer) valueOf(expr ast.Expr, free []variable) value {
	v := value{a.newLeaf(expr, free), slotsOf(free)}
	a.read.reads(v)
	return v
}

func slotsOf(free []variable) []int {
	slots := make([]int, len(free))
	for i, v := range free {
		slots[i] = v.slot
	}
	return slots
}

// comparison asks CEL about the whole where the two sides can't be told by themselves.
func (l local) comparison(expr ast.Expr, r relation, left, right ast.Expr, s scope) condition {
	if same, ok := identityOf(left, right, s); ok && r == equal {
		l.analyzer.read.readsPair()
		return same
	}
	if speaksOfOne(expr, s) {
		return l.whole(expr, s)
	}
	sides := comparison{r, l.quantity(left, s), l.quantity(right, s)}
	if isOpen(sides.left) || isOpen(sides.right) {
		return localComparison{sides, l.whole(expr, s)}
	}
	return localComparison{sides, l.wholeOfSides(expr, s)}
}

// wholeOfSides has CEL compare what depends on nothing but two sides that are read already.
func (l local) wholeOfSides(expr ast.Expr, s scope) condition {
	read := l.analyzer.read
	l.analyzer.read = nil
	whole := l.whole(expr, s)
	l.analyzer.read = read
	return whole
}

// whole has CEL compare.
func (l local) whole(expr ast.Expr, s scope) condition {
	whole := l.value(expr, s)
	if tree.IsCall(expr, operators.NotEquals) {
		return newNot(whole)
	}
	return whole
}

func speaksOfOne(expr ast.Expr, s scope) bool {
	free, _ := references(expr, s)
	return len(free) <= 1
}

func identityOf(left, right ast.Expr, s scope) (identity, bool) {
	l, isDevice := deviceOf(left, s)
	r, areDevices := deviceOf(right, s)
	return identity{l, r}, isDevice && areDevices
}

// deviceOf is the slot of a variable that stands for a device.
func deviceOf(expr ast.Expr, s scope) (slot int, ok bool) {
	if expr.Kind() != ast.IdentKind {
		return 0, false
	}
	is := s[expr.AsIdent()]
	return is.slot, is.isDevice
}

// identity is d == o.
type identity struct{ left, right int }

func (n identity) bound(s *state) Outcome { return outcomeOf(s.slots[n.left] == s.slots[n.right]) }

// localComparison compares something about two devices or more.
type localComparison struct {
	comparison
	// whole asks CEL.
	whole condition
}

// negation is not that of the comparison, which knows nothing of the whole.
func (n localComparison) negation() condition { return not{n} }

func (n localComparison) bound(s *state) Outcome {
	left, right := n.left.number(s), n.right.number(s)
	if !left.open && !right.open {
		return compare(n.relation, left, right)
	}
	if l, r := keyOf(s, n.left), keyOf(s, n.right); n.relation == equal && l != nil && r != nil {
		return outcomeOf(l == r)
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
		switch order := compareValues(left[0], right[0]); {
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

// listRelation reads a function on the lists of two devices.
func (l local) listRelation(expr ast.Expr, s scope) (condition, bool) {
	if expr.Kind() != ast.CallKind {
		return nil, false
	}
	call := expr.AsCall()
	holds := listRelations[call.FunctionName()]
	if holds == nil || !isOfDevice(call.Args()[0], s) || !isOfDevice(call.Args()[1], s) {
		return nil, false
	}
	left, leftOK := l.quantity(call.Args()[0], s).(value)
	right, rightOK := l.quantity(call.Args()[1], s).(value)
	return listRelation{left, right, holds, l.wholeOfSides(expr, s)}, leftOK && rightOK
}

// listRelation is a function on the lists of two devices.
type listRelation struct {
	left, right value
	holds       func(left, right []any) bool
	// whole asks CEL.
	whole condition
}

func (n listRelation) bound(s *state) Outcome {
	if l, r := n.left.entry(s).elements, n.right.entry(s).elements; l != nil && r != nil {
		return outcomeOf(n.holds(*l, *r))
	}
	return n.whole.bound(s)
}

func (l local) quantity(expr ast.Expr, s scope) quantity {
	if !l.analyzer.mayRead() {
		return open{}
	}
	if value, ok := tree.Literal[types.Int](expr); ok {
		return constant{int64(value)}
	}
	free, single := references(expr, s)
	if len(free) > 1 {
		expr = l.analyzer.normal.reduce(expr, s)
		free, single = references(expr, s)
	}
	if expr.Kind() == ast.CallKind && len(free) != 1 {
		if result, ok := readQuantity(l, expr.AsCall(), s); ok {
			return result
		}
	}
	if !single || len(free) > maxArity {
		return open{}
	}
	return l.analyzer.valueOf(expr, free)
}
