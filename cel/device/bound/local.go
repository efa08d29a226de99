// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
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

// local reads a condition on the devices that variables stand for.
func (a *analyzer) local(expr ast.Expr, s scope) condition {
	if !speaksOfOne(expr, s) {
		expr = a.reduce(expr, s)
		if left, right, ok := sameness(expr); ok {
			return a.localComparison(expr, equal, left, right, s)
		}
		if rewritten, ok := a.rewrite(expr, s); ok {
			return a.local(rewritten, s)
		}
	}
	if expr.Kind() == ast.CallKind {
		call := expr.AsCall()
		args := call.Args()
		switch function := call.FunctionName(); function {
		case operators.LogicalAnd:
			return fold(args, func(arg ast.Expr) condition { return a.local(arg, s) }, func(l, r condition) condition { return and{l, r} })
		case operators.LogicalOr:
			return fold(args, func(arg ast.Expr) condition { return a.local(arg, s) }, func(l, r condition) condition { return or{l, r} })
		case operators.LogicalNot:
			return newNot(a.local(args[0], s))
		case operators.Conditional:
			return conditional{a.local(args[0], s), a.local(args[1], s), a.local(args[2], s)}
		case operators.NotEquals:
			return a.localInequality(expr, args[0], args[1], s)
		}
		if relation, left, right, ok := comparisonOf(call); ok {
			return a.localComparison(expr, relation, left, right, s)
		}
	}
	if value, ok := tree.Literal[types.Bool](expr); ok {
		return verdict{outcomeOf(bool(value))}
	}
	return a.value(expr, s)
}

// fold joins what is read of the arguments: the parser makes one call of a long
// chain of && or ||.
func fold(args []ast.Expr, read func(ast.Expr) condition, join func(l, r condition) condition) condition {
	result := read(args[0])
	for _, arg := range args[1:] {
		result = join(result, read(arg))
	}
	return result
}

// comparisonOf returns the relation that a call asks for, and of what to what.
func comparisonOf(call ast.CallExpr) (r relation, left, right ast.Expr, ok bool) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Equals:
		return equal, args[0], args[1], true
	case operators.Less:
		return less, args[0], args[1], true
	case operators.LessEquals:
		return lessOrEqual, args[0], args[1], true
	case operators.Greater:
		return less, args[1], args[0], true
	case operators.GreaterEquals:
		return lessOrEqual, args[1], args[0], true
	default:
		return 0, nil, nil, false
	}
}

// value is the part as a leaf. It is open if it speaks of too many devices.
func (a *analyzer) value(expr ast.Expr, s scope) condition {
	free, single := references(expr, s)
	if !single || len(free) > maxArity {
		return open{}
	}
	return a.valueOf(expr, free)
}

func (a *analyzer) valueOf(expr ast.Expr, free []variable) value {
	return value{a.newLeaf(expr, free), slotsOf(free)}
}

func slotsOf(free []variable) []int {
	slots := make([]int, len(free))
	for i, v := range free {
		slots[i] = v.slot
	}
	return slots
}

func (a *analyzer) localComparison(expr ast.Expr, r relation, left, right ast.Expr, s scope) condition {
	if same, ok := identityOf(left, right, s); ok && r == equal {
		return same
	}
	whole := a.value(expr, s)
	if speaksOfOne(expr, s) {
		return whole
	}
	return localComparison{comparison{r, a.localQuantity(left, s), a.localQuantity(right, s)}, whole}
}

func (a *analyzer) localInequality(expr ast.Expr, left, right ast.Expr, s scope) condition {
	if same, ok := identityOf(left, right, s); ok {
		return newNot(same)
	}
	whole := a.value(expr, s)
	if speaksOfOne(expr, s) {
		return whole
	}
	return newNot(localComparison{comparison{equal, a.localQuantity(left, s), a.localQuantity(right, s)}, newNot(whole)})
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
	return is.slot, is.what == aDevice
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

// localQuantity reads a quantity of the devices that variables stand for.
func (a *analyzer) localQuantity(expr ast.Expr, s scope) quantity {
	if value, ok := tree.Literal[types.Int](expr); ok {
		return constant{int64(value)}
	}
	free, single := references(expr, s)
	if len(free) > 1 {
		expr = a.reduce(expr, s)
		free, single = references(expr, s)
	}
	if expr.Kind() == ast.CallKind && len(free) != 1 {
		call := expr.AsCall()
		args := call.Args()
		if o, known := operationOf(call.FunctionName()); known && len(args) == 2 {
			return newArithmetic(o, a.localQuantity(args[0], s), a.localQuantity(args[1], s))
		}
		if call.FunctionName() == operators.Conditional {
			return conditionalNumber{a.local(args[0], s), a.localQuantity(args[1], s), a.localQuantity(args[2], s)}
		}
	}
	if !single || len(free) > maxArity {
		return open{}
	}
	return a.valueOf(expr, free)
}
