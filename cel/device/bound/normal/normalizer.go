// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// The names of the rules that are applied outside of [Normalizer.Rewrite].
const (
	inlineBinding  = "inline-binding"
	UnrollConjunct = "unroll-conjunct"
	UnrollCount    = "unroll-count"
	CompareSorted  = "compare-sorted"
	CompareAll     = "compare-all"
)

// A Normalizer rewrites parts of one expression into their normal form.
type Normalizer struct {
	// Write creates nodes. reduced maps the ID of a part to the part that Reduce returned for it. Copies counts the created
	// nodes.
	Write   *tree.Builder
	reduced map[int64]ast.Expr
	Copies  int
	// Unguarded has the IDs of parts that may abort the evaluation and have no guard. The function guard tries to add a guard
	// for a part, and reports whether it succeeded.
	Unguarded sets.Set[int64]
	guard     func(ast.Expr, Scope) bool
	// Trace is called for each applied rule. It may be nil.
	Trace func(rule string, before, after ast.Expr)
}

// New returns a normalizer for an expression. guard tries to add a guard that detects when a part would abort, and reports
// whether it succeeded.
func New(expression *device.Expression, guard func(ast.Expr, Scope) bool) *Normalizer {
	return &Normalizer{Write: tree.NewBuilder(expression.AST()), reduced: make(map[int64]ast.Expr), Unguarded: sets.New[int64](), guard: guard}
}

// Traced calls Trace for an applied rule, unless Trace is nil.
func (n *Normalizer) Traced(rule string, before, after ast.Expr) {
	if n.Trace != nil {
		n.Trace(rule, before, after)
	}
}

// IsBool reports whether an expression has type bool.
func (n *Normalizer) IsBool(expr ast.Expr) bool {
	return n.Write.TypeOf(expr).Kind() == types.BoolKind
}

// TypeOf returns the type of a comprehension's variable, or dyn if the variable is not used.
func (n *Normalizer) TypeOf(name string, of ast.ComprehensionExpr) *types.Type {
	result := types.DynType
	for _, part := range []ast.Expr{of.LoopCondition(), of.LoopStep(), of.Result()} {
		tree.Visit(part, func(e ast.Expr, hidden tree.Names) {
			if tree.IsIdent(e, name) && !hidden.Has(name) {
				result = n.Write.TypeOf(e)
			}
		})
	}
	return result
}

// NodesOf returns the number of nodes of a syntax tree.
func NodesOf(expr ast.Expr) int {
	nodes := 0
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(ast.Expr) { nodes++ }))
	return nodes
}
