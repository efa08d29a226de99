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

// condition converts a part of type bool to a condition.
func (a *analyzer) condition(expr ast.Expr, s normal.Scope) propagate.Condition {
	if !a.mayRead() {
		return propagate.Open{}
	}
	if free, single := normal.References(expr, s); single && (len(free) <= propagate.MaxArity || !isOperation(expr)) {
		return a.newPredicate(expr, free, s)
	}
	if reduced := a.normal.Reduce(expr, s); reduced != expr {
		return a.condition(reduced, s)
	}
	if left, right, ok := normal.Sameness(expr); ok {
		return a.comparison(expr, outcome.Equal, left, right, s)
	}
	if rewritten, ok := a.normal.Rewrite(expr, s); ok {
		return a.condition(rewritten, s)
	}
	if expr.Kind() == ast.ComprehensionKind {
		return a.quantifier(expr, s)
	}
	if result, ok := readCondition(a, expr, s); ok {
		return result
	}
	return a.relation(expr, s)
}

// newPredicate converts a part that does not refer to the set to a predicate.
func (a *analyzer) newPredicate(expr ast.Expr, free []normal.Variable, s normal.Scope) propagate.Condition {
	before := a.read
	a.read = &propagate.Tabulated{Slots: slotsOf(free)}
	holds := local{a}.condition(expr, s)
	read := a.read
	a.read = before
	if len(free) == 0 || len(free) > propagate.MaxArity {
		return holds
	}
	return a.tabulated("predicate", expr, free, holds, *read)
}

// comparison converts a comparison of numbers or bools to a condition. Comparisons of values with other types are open.
func (a *analyzer) comparison(_ ast.Expr, r outcome.Relation, left, right ast.Expr, s normal.Scope) propagate.Condition {
	if r == outcome.Equal {
		if same, ok := a.sortedComparison(left, right, s); ok {
			return same
		}
		if only, ok := a.onlyValue(left, right, s); ok {
			return only
		}
	}
	if r == outcome.Equal && (a.normal.IsBool(left) || a.normal.IsBool(right)) {
		return condition.NewBiconditional(a.condition(left, s), a.condition(right, s))
	}
	c := condition.Comparison{Relation: r, Left: a.quantity(left, s), Right: a.quantity(right, s)}
	if propagate.IsOpen(c.Left) || propagate.IsOpen(c.Right) {
		if same, ok := a.oneValue(c, left, right, s); ok {
			return same
		}
		return propagate.Open{}
	}
	l, constantLeft := c.Left.(condition.Constant)
	m, constantRight := c.Right.(condition.Constant)
	var is propagate.Condition = c
	switch {
	case constantLeft && constantRight:
		return condition.NewVerdict(outcome.Compare(r, outcome.Exactly(l.Value), outcome.Exactly(m.Value)))
	case constantRight:
		is = a.WithLimits(c, c.Left, outcome.LimitsOf(r, m.Value, false))
	case constantLeft:
		is = a.WithLimits(c, c.Right, outcome.LimitsOf(r, l.Value, true))
	}
	if _, asWritten := is.(condition.Comparison); !asWritten {
		return is
	}
	if linear, ok := a.LinearComparison(c); ok {
		return linear
	}
	return c
}

// quantity converts a part of type int to a quantity.
func (a *analyzer) quantity(expr ast.Expr, s normal.Scope) propagate.Quantity {
	if !a.mayRead() {
		return propagate.Open{}
	}
	if value, ok := tree.Literal[types.Int](expr); ok {
		return condition.Constant{Value: int64(value)}
	}
	if _, single := normal.References(expr, s); single {
		return local{a}.quantity(expr, s)
	}
	if reduced := a.normal.Reduce(expr, s); reduced != expr {
		return a.quantity(reduced, s)
	}
	if expr.Kind() != ast.CallKind {
		return propagate.Open{}
	}
	call := expr.AsCall()
	if result, ok := readQuantity(a, call, s); ok {
		return result
	}
	switch call.FunctionName() {
	case operators.Negate:
		return condition.NewArithmetic(outcome.Subtraction, condition.Constant{Value: 0}, a.quantity(call.Args()[0], s))
	case "size":
		return a.size(operand(call), s)
	case "max", "min", "sum":
		return a.aggregate(call, s)
	default:
		return propagate.Open{}
	}
}

func (a *analyzer) size(of ast.Expr, s normal.Scope) propagate.Quantity {
	if of == nil {
		return propagate.Open{}
	}
	if list, ok := a.deviceList(of, s); ok {
		if _, all := list.(condition.AllDevices); all {
			return condition.Constant{Value: int64(a.SetSize)}
		}
		return condition.NewSize(list)
	}
	if values, ok := a.mapped(of, s); ok {
		return condition.NewSize(condition.NewValued(values.Mapped))
	}
	if sum, ok := a.normal.CountOfConstants(a.normal.Reduce(of, s)); ok {
		a.normal.Traced(normal.UnrollCount, of, sum)
		a.normal.Replace(of, sum, s)
		return a.quantity(sum, s)
	}
	if !tree.IsCall(of, "distinct") || !of.AsCall().IsMemberFunction() {
		return propagate.Open{}
	}
	m, ok := a.mapped(of.AsCall().Target(), s)
	if !ok {
		return a.unionSize(of.AsCall().Target(), s)
	}
	return condition.NewDistinctSize(m.Mapped)
}

func (a *analyzer) aggregate(call ast.CallExpr, s normal.Scope) propagate.Quantity {
	if !call.IsMemberFunction() || len(call.Args()) > 0 {
		return propagate.Open{}
	}
	insignificant := []string{"reverse", "sort", "distinct"}
	if call.FunctionName() == "sum" {
		insignificant = insignificant[:1]
	}
	// Ignoring sort is safe. Sorting fails only if the values have several types, and then the size is open anyway.
	list, ok := a.normal.Without(call.Target(), s, insignificant...)
	if !ok {
		return propagate.Open{}
	}
	m, ok := a.mapped(list, s)
	if !ok {
		return propagate.Open{}
	}
	switch call.FunctionName() {
	case "max":
		return condition.NewGreatest(m.Mapped)
	case "min":
		return condition.NewLeast(m.Mapped)
	}
	// The sum of an empty list has the type of its elements, or int if CEL does not know the type. So the list may need to be
	// ints.
	if _, all := m.List.(condition.AllDevices); !all && !a.normal.MayBeInt(m.element) {
		return propagate.Open{}
	}
	return condition.NewTotal(m.Mapped)
}
