// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celset/celset/cel/tree"
)

// A rule rewrites a condition towards its normal form. Both conditions must have the same value for every set, and fail for the
// same sets. For example, x - y == 0 can't become x == y, because the difference may overflow. n.Write.TypeOf returns types. A
// part that is used twice must be copied (n.Again).
//
// To add a rule, write its function, add it to rules, and add an expression to the file of its family in testdata/rules. Rules
// also apply to the results of rules, so rewriting must terminate.
type rule struct {
	// name is the name of the rule in the transcripts in testdata/rules.
	name string
	// setOnly limits the rule to conditions that refer to the set. Other conditions need no rewriting, because CEL evaluates
	// them.
	setOnly bool
	// apply returns the rewritten condition. It returns false if the rule does not match.
	apply func(n *Normalizer, expr ast.Expr, s Scope) (ast.Expr, bool)
}

// rules are tried in this order. Some rules are applied elsewhere: inline-binding by Reduce, unroll-conjunct to whole
// conjuncts, unroll-count to numbers, and compare-sorted and compare-all to comparisons.
var rules = []rule{
	// [1, 2].all(n, p(n))            p(1) && p(2)
	{"unroll-quantifier", false, unrollQuantifier},
	// list.distinct().all(x, p(x))   list.all(x, p(x))
	{"forget-order", true, forgetOrder},
	// k in [1, 2]                    1 in [k] || 2 in [k]
	{"membership-in-constants", false, membershipInConstants},
	// k in list                      list.exists(x, k in [x])
	{"membership-in-list", true, membershipInList},
	// sets.contains(list, ['a'])     'a' in list
	{"contains-all", true, onTwoLists("sets.contains", (*Normalizer).containsAll)},
	// sets.intersects(list, ['a'])   list.exists(x, 'a' in [x])
	{"intersects", true, onTwoLists("sets.intersects", (*Normalizer).intersects)},
	// sets.equivalent(a, b)          sets.contains(a, b) && sets.contains(b, a)
	{"equivalent", true, onTwoLists("sets.equivalent", equivalent)},
}

func unrollQuantifier(n *Normalizer, expr ast.Expr, _ Scope) (ast.Expr, bool) {
	if expr.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	return n.Unrolled(expr.AsComprehension())
}

func membershipInConstants(n *Normalizer, expr ast.Expr, _ Scope) (ast.Expr, bool) {
	if !tree.IsCall(expr, operators.In) {
		return nil, false
	}
	k, list := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	elements, ok := n.constants(list)
	return n.isOneOf(k, elements), ok
}

func membershipInList(n *Normalizer, expr ast.Expr, s Scope) (ast.Expr, bool) {
	if !tree.IsCall(expr, operators.In) {
		return nil, false
	}
	return n.isIn(expr.AsCall().Args()[0], expr.AsCall().Args()[1], s)
}

// onTwoLists returns the apply function of a rule for calls of a function of two lists.
func onTwoLists(function string, apply func(n *Normalizer, left, right ast.Expr, s Scope) (ast.Expr, bool)) func(*Normalizer, ast.Expr, Scope) (ast.Expr, bool) {
	return func(n *Normalizer, expr ast.Expr, s Scope) (ast.Expr, bool) {
		if !tree.IsCall(expr, function) {
			return nil, false
		}
		return apply(n, expr.AsCall().Args()[0], expr.AsCall().Args()[1], s)
	}
}

func equivalent(n *Normalizer, left, right ast.Expr, s Scope) (ast.Expr, bool) {
	there, ok := n.containsAll(left, right, s)
	back, too := n.containsAll(right, left, s)
	if !ok || !too {
		return nil, false
	}
	return n.Write.And(there, back), true
}

// Rewrite applies the first matching rule to a condition. It returns false if no rule matches.
func (n *Normalizer) Rewrite(expr ast.Expr, s Scope) (ast.Expr, bool) {
	if n.Copies++; n.Copies > maxCopies {
		return nil, false
	}
	before := n.mayAbort(expr)
	result, ok := n.rewritten(expr, s)
	if !ok {
		return nil, false
	}
	n.Replace(expr, result, s)
	if before {
		// CEL still evaluates the original expression, so a part that may abort remains unguarded.
		n.Unguarded.Insert(expr.ID())
	}
	return result, true
}

// rewritten applies the first rule that matches, without updating Unguarded.
func (n *Normalizer) rewritten(expr ast.Expr, s Scope) (ast.Expr, bool) {
	_, single := References(expr, s)
	for _, r := range rules {
		if single && r.setOnly {
			continue
		}
		if result, ok := r.apply(n, expr, s); ok {
			n.Traced(r.name, expr, result)
			return result, true
		}
	}
	return nil, false
}
