// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// A part that refers to two devices could be a leaf, but then CEL would be called once for each pair. Most such parts compare a
// value of one device with a value of the other. So CEL computes these values once for each device, and Go code compares them.
// CEL compares pairs only if the values are not ints, strings or bools.

// local converts parts that refer to single devices and have no quantifiers. A part that can't be split further becomes a leaf.
type local struct{ analyzer *analyzer }

func (l local) condition(expr ast.Expr, s normal.Scope) propagate.Condition {
	if !l.analyzer.mayRead() {
		return propagate.Open{}
	}
	if !speaksOfOne(expr, s) {
		expr = l.analyzer.normal.Reduce(expr, s)
		if left, right, ok := normal.Sameness(expr); ok {
			return l.comparison(expr, outcome.Equal, left, right, s)
		}
		if result, ok := l.listRelation(expr, s); ok {
			return result
		}
		if rewritten, ok := l.analyzer.normal.Rewrite(expr, s); ok {
			return l.condition(rewritten, s)
		}
	}
	if result, ok := readCondition(l, expr, s); ok {
		return result
	}
	if value, ok := tree.Literal[types.Bool](expr); ok {
		return condition.NewVerdict(outcome.Of(bool(value)))
	}
	return l.value(expr, s)
}

func (l local) NewAnd(left, right propagate.Condition) propagate.Condition {
	return condition.NewAnd(left, right)
}

func (l local) NewOr(left, right propagate.Condition) propagate.Condition {
	return condition.NewOr(left, right)
}

func (l local) newConditional(when, yes, no propagate.Condition) propagate.Condition {
	return condition.NewChoice(when, yes, no)
}

// value returns the part as a leaf. The result is open if the part refers to more than MaxArity devices.
func (l local) value(expr ast.Expr, s normal.Scope) propagate.Condition {
	free, single := normal.References(expr, s)
	if !single || len(free) > propagate.MaxArity {
		return propagate.Open{}
	}
	return l.analyzer.valueOf(expr, free)
}

// comparison compares the values of the two sides in Go. For values that can't be compared in Go, CEL evaluates the whole
// comparison.
func (l local) comparison(expr ast.Expr, r outcome.Relation, left, right ast.Expr, s normal.Scope) propagate.Condition {
	if same, ok := identityOf(left, right, s); ok && r == outcome.Equal {
		l.analyzer.read.ReadsPair()
		return same
	}
	if speaksOfOne(expr, s) {
		return l.whole(expr, s)
	}
	sides := condition.Comparison{Relation: r, Left: l.quantity(left, s), Right: l.quantity(right, s)}
	if propagate.IsOpen(sides.Left) || propagate.IsOpen(sides.Right) {
		return condition.NewLocalComparison(sides, l.whole(expr, s))
	}
	return condition.NewLocalComparison(sides, l.wholeOfSides(expr, s))
}

// wholeOfSides is like whole, for a comparison whose sides have been converted. The predicate already reads the sides' leaves,
// so the leaf for the whole comparison is not recorded.
func (l local) wholeOfSides(expr ast.Expr, s normal.Scope) propagate.Condition {
	read := l.analyzer.read
	l.analyzer.read = nil
	whole := l.whole(expr, s)
	l.analyzer.read = read
	return whole
}

// whole returns the leaf for the whole comparison. For != it returns the negation of the leaf.
func (l local) whole(expr ast.Expr, s normal.Scope) propagate.Condition {
	whole := l.value(expr, s)
	if tree.IsCall(expr, operators.NotEquals) {
		return condition.NewNot(whole)
	}
	return whole
}

func speaksOfOne(expr ast.Expr, s normal.Scope) bool {
	free, _ := normal.References(expr, s)
	return len(free) <= 1
}

func identityOf(left, right ast.Expr, s normal.Scope) (propagate.Condition, bool) {
	l, isDevice := normal.DeviceOf(left, s)
	r, areDevices := normal.DeviceOf(right, s)
	return condition.NewIdentity(l, r), isDevice && areDevices
}

// listRelation converts a function on the lists of two devices, such as sets.intersects(d.rails, o.rails).
func (l local) listRelation(expr ast.Expr, s normal.Scope) (propagate.Condition, bool) {
	if expr.Kind() != ast.CallKind {
		return nil, false
	}
	call := expr.AsCall()

	if !condition.IsListRelation(call.FunctionName()) || !normal.IsOfDevice(call.Args()[0], s) || !normal.IsOfDevice(call.Args()[1], s) {
		return nil, false
	}
	left, leftOK := l.quantity(call.Args()[0], s).(propagate.Value)
	right, rightOK := l.quantity(call.Args()[1], s).(propagate.Value)
	return condition.NewListRelation(call.FunctionName(), left, right, l.wholeOfSides(expr, s)), leftOK && rightOK
}

func (l local) quantity(expr ast.Expr, s normal.Scope) propagate.Quantity {
	if !l.analyzer.mayRead() {
		return propagate.Open{}
	}
	if value, ok := tree.Literal[types.Int](expr); ok {
		return condition.Constant{Value: int64(value)}
	}
	free, single := normal.References(expr, s)
	if len(free) > 1 {
		expr = l.analyzer.normal.Reduce(expr, s)
		free, single = normal.References(expr, s)
	}
	if expr.Kind() == ast.CallKind && len(free) != 1 {
		if result, ok := readQuantity(l, expr.AsCall(), s); ok {
			return result
		}
	}
	if !single || len(free) > propagate.MaxArity {
		return propagate.Open{}
	}
	return l.analyzer.valueOf(expr, free)
}
