// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// CEL expands its macros into comprehensions. A comprehension is a loop over a list with an accumulator, an initial value, a
// loop condition, a step and a result. This file recognizes the expansions.

// Quantifier is a macro that tests whether a condition holds for all, some or exactly one of the elements of a list.
type Quantifier int

const (
	// NoQuantifier means that a comprehension is not the expansion of a quantifier.
	NoQuantifier Quantifier = iota
	// All is list.all(x, holds).
	All
	// Exists is list.exists(x, holds).
	Exists
	// ExistsOne is list.exists_one(x, holds), or existsOne.
	ExistsOne
)

// QuantifierOf returns the quantifier of a comprehension with one or two variables, and its condition. It returns NoQuantifier
// and nil for other comprehensions.
func QuantifierOf(c ast.ComprehensionExpr) (is Quantifier, holds ast.Expr) {
	step, accumulator := c.LoopStep(), c.AccuVar()
	switch {
	case IsLiteral(c.AccuInit(), types.True) && isFold(step, operators.LogicalAnd, accumulator) && IsIdent(c.Result(), accumulator):
		return All, step.AsCall().Args()[1]
	case IsLiteral(c.AccuInit(), types.False) && isFold(step, operators.LogicalOr, accumulator) && IsIdent(c.Result(), accumulator):
		return Exists, step.AsCall().Args()[1]
	case IsLiteral(c.AccuInit(), types.Int(0)) && isCount(step, accumulator) && isOne(c.Result(), accumulator):
		return ExistsOne, step.AsCall().Args()[0]
	default:
		return NoQuantifier, nil
	}
}

// CollectionOf recognizes the macros filter and map with one or two variables. Each step of the loop appends element to a list
// if keeps is true or nil.
//
//	list.filter(x, keeps)    list.map(x, element)    list.map(x, keeps, element)
//
// For a filter, element is the loop variable itself.
func CollectionOf(c ast.ComprehensionExpr) (keeps, element ast.Expr, ok bool) {
	if !IsEmptyList(c.AccuInit()) || !IsLiteral(c.LoopCondition(), types.True) || !IsIdent(c.Result(), c.AccuVar()) {
		return nil, nil, false
	}
	step := c.LoopStep()
	if IsCall(step, operators.Conditional) {
		args := step.AsCall().Args()
		if !IsIdent(args[2], c.AccuVar()) {
			return nil, nil, false
		}
		keeps, step = args[0], args[1]
	}
	if !isFold(step, operators.Add, c.AccuVar()) {
		return nil, nil, false
	}
	element, ok = OnlyElement(step.AsCall().Args()[1])
	return keeps, element, ok
}

// BindingOf recognizes cel.bind(name, value, body), a loop over an empty list whose accumulator has the name.
func BindingOf(expr ast.Expr) (name string, value, body ast.Expr, ok bool) {
	if expr.Kind() != ast.ComprehensionKind {
		return "", nil, nil, false
	}
	c := expr.AsComprehension()
	if c.HasIterVar2() || !IsEmptyList(c.IterRange()) || !IsLiteral(c.LoopCondition(), types.False) || !IsIdent(c.LoopStep(), c.AccuVar()) {
		return "", nil, nil, false
	}
	return c.AccuVar(), c.AccuInit(), c.Result(), true
}

// isFold reports whether expr is "accumulator OPERATOR something".
func isFold(expr ast.Expr, operator, accumulator string) bool {
	return IsCall(expr, operator) && len(expr.AsCall().Args()) == 2 && IsIdent(expr.AsCall().Args()[0], accumulator)
}

// isCount reports whether expr is "something ? accumulator + 1 : accumulator".
func isCount(expr ast.Expr, accumulator string) bool {
	if !IsCall(expr, operators.Conditional) {
		return false
	}
	args := expr.AsCall().Args()
	return isFold(args[1], operators.Add, accumulator) && IsLiteral(args[1].AsCall().Args()[1], types.Int(1)) &&
		IsIdent(args[2], accumulator)
}

// isOne reports whether expr is "accumulator == 1".
func isOne(expr ast.Expr, accumulator string) bool {
	return isFold(expr, operators.Equals, accumulator) && IsLiteral(expr.AsCall().Args()[1], types.Int(1))
}
