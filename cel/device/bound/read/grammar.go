// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// partReader has the methods that differ between the two converters. [analyzer] converts parts that refer to the set, and
// [local] parts that refer to single devices. The two create different leaves, and treat constant operands differently.
type partReader interface {
	condition(expr ast.Expr, s normal.Scope) propagate.Condition
	quantity(expr ast.Expr, s normal.Scope) propagate.Quantity
	NewAnd(left, right propagate.Condition) propagate.Condition
	NewOr(left, right propagate.Condition) propagate.Condition
	newConditional(when, yes, no propagate.Condition) propagate.Condition
	// comparison converts expr, which compares left with right. If expr uses !=, comparison returns the condition for ==.
	comparison(expr ast.Expr, r outcome.Relation, left, right ast.Expr, s normal.Scope) propagate.Condition
}

// readCondition converts an operator of type bool, such as && or <. It returns false for any other expression.
func readCondition(r partReader, expr ast.Expr, s normal.Scope) (propagate.Condition, bool) {
	if expr.Kind() != ast.CallKind {
		return nil, false
	}
	args := expr.AsCall().Args()
	each := func(arg ast.Expr) propagate.Condition { return r.condition(arg, s) }
	switch expr.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return fold(args, each, r.NewAnd), true
	case operators.LogicalOr:
		return fold(args, each, r.NewOr), true
	case operators.LogicalNot:
		return condition.NewNot(each(args[0])), true
	case operators.Conditional:
		return r.newConditional(each(args[0]), each(args[1]), each(args[2])), true
	case operators.NotEquals:
		return condition.NewNot(r.comparison(expr, outcome.Equal, args[0], args[1], s)), true
	}
	if relation, left, right, ok := comparisonOf(expr.AsCall()); ok {
		return r.comparison(expr, relation, left, right, s), true
	}
	return nil, false
}

// readQuantity converts an operator of type int, such as +. It returns false for any other expression.
func readQuantity(r partReader, call ast.CallExpr, s normal.Scope) (propagate.Quantity, bool) {
	args := call.Args()
	if o, known := outcome.OperationOf(call.FunctionName()); known && len(args) == 2 {
		return condition.NewArithmetic(o, r.quantity(args[0], s), r.quantity(args[1], s)), true
	}
	if call.FunctionName() == operators.Conditional {
		return condition.NewConditionalNumber(r.condition(args[0], s), r.quantity(args[1], s), r.quantity(args[2], s)), true
	}
	return nil, false
}

// isOperation reports whether an expression is a logical operator. An operand may refer to fewer devices than the expression.
func isOperation(expr ast.Expr) bool {
	return tree.IsCall(expr, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional)
}

// fold converts each argument with read and combines the conditions with join. A chain of && or || is a single call with many
// arguments.
func fold(args []ast.Expr, read func(ast.Expr) propagate.Condition, join func(l, r propagate.Condition) propagate.Condition) propagate.Condition {
	result := read(args[0])
	for _, arg := range args[1:] {
		result = join(result, read(arg))
	}
	return result
}

// comparisonOf returns the relation of a comparison and its two sides. It swaps the sides of > and >=, so that r is < or <=.
func comparisonOf(call ast.CallExpr) (r outcome.Relation, left, right ast.Expr, ok bool) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Equals:
		return outcome.Equal, args[0], args[1], true
	case operators.Less:
		return outcome.Less, args[0], args[1], true
	case operators.LessEquals:
		return outcome.LessOrEqual, args[0], args[1], true
	case operators.Greater:
		return outcome.Less, args[1], args[0], true
	case operators.GreaterEquals:
		return outcome.LessOrEqual, args[1], args[0], true
	default:
		return 0, nil, nil, false
	}
}
