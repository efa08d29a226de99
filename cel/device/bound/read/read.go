// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound/condition"
	"github.com/celset/celset/cel/device/bound/normal"
	"github.com/celset/celset/cel/device/bound/propagate"
	"github.com/celset/celset/cel/tree"
)

// Conjuncts converts the given conjuncts of an expression, all of them or only the first ones, for sets of one size. It also
// returns the approximate memory of the problem in bytes.
func Conjuncts(expression *device.Expression, size int, o Options, conjuncts ...ast.Expr) (result propagate.Problem, bytes int) {
	a := newAnalyzer(expression, size, o)
	for _, expr := range conjuncts {
		a.normal.Require(expr, normal.Scope{})
		for _, conjunct := range a.conjuncts(expr) {
			c := a.conjunct(conjunct)
			if condition.IsTrue(c) {
				continue
			}
			result.Conjuncts = a.WithConjunct(result.Conjuncts, c)
		}
	}
	if !a.finish(&result) {
		return propagate.Problem{}, 0
	}
	result.Provable = !slices.ContainsFunc(result.Conjuncts, func(c propagate.Condition) bool { return propagate.IsOpen(c) })
	return result, a.bytes()
}

// Goal converts an expression of type int, a preference, for sets of one size.
func Goal(expression *device.Expression, size int, o Options) (result propagate.Problem, bytes int) {
	a := newAnalyzer(expression, size, o)
	expr := expression.AST().Expr()
	a.normal.Require(expr, normal.Scope{})
	goal := a.quantity(expr, normal.Scope{})
	result.Goal, result.Above = goal, func(value int64) propagate.Condition { return condition.Above(goal, value) }
	if !a.finish(&result) {
		return result, 0
	}
	return result, a.bytes()
}

// finish completes the problem. It returns false if a part may abort the evaluation and has no guard, because bounds would be
// wrong.
func (a *analyzer) finish(result *propagate.Problem) bool {
	if a.normal.Unguarded.Len() > 0 {
		return false
	}
	result.Usable = true
	result.Leaves, result.Predicates, result.Derivations = a.leaves, a.predicates, a.Derivations
	result.Slots, result.Guards = a.slots, a.guards
	return true
}

// conjuncts splits an expression at the top-level "&&".
func (a *analyzer) conjuncts(expr ast.Expr) []ast.Expr {
	expr = a.normal.Reduce(expr, normal.Scope{})
	if _, single := normal.References(expr, normal.Scope{}); !single && expr.Kind() == ast.ComprehensionKind {
		if result, ok := a.normal.Unrolled(expr.AsComprehension()); ok {
			a.normal.Traced(normal.UnrollConjunct, expr, result)
			a.normal.Replace(expr, result, normal.Scope{})
			return a.conjuncts(result)
		}
	}
	if !tree.IsCall(expr, operators.LogicalAnd) {
		return []ast.Expr{expr}
	}
	var result []ast.Expr
	for _, arg := range expr.AsCall().Args() {
		result = append(result, a.conjuncts(arg)...)
	}
	return result
}
