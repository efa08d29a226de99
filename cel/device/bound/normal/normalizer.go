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

// The names of the rules that [Normalizer.Rewrite] does not apply.
const (
	inlineBinding  = "inline-binding"
	UnrollConjunct = "unroll-conjunct"
	UnrollCount    = "unroll-count"
	CompareSorted  = "compare-sorted"
	CompareAll     = "compare-all"
)

// Normalizer writes parts of an expression in their normal form. The reader tells it whether a part
// is guarded.
type Normalizer struct {
	// Write makes parts. Those that took the place of others are in reduced, by the number
	// of what they replaced; copies counts them.
	Write   *tree.Builder
	reduced map[int64]ast.Expr
	Copies  int
	// Unguarded are the parts, by their number, that may abort the evaluation and that
	// no guard looks after. guard reports whether one could be found for a part.
	Unguarded sets.Set[int64]
	guard     func(ast.Expr, Scope) bool
	// Trace is told of each rule that was applied, if it is not nil.
	Trace func(rule string, before, after ast.Expr)
}

// New returns a normalizer for an expression. guard reports whether it found something that makes sure that a part does not abort.
func New(expression *device.Expression, guard func(ast.Expr, Scope) bool) *Normalizer {
	return &Normalizer{Write: tree.NewBuilder(expression.AST()), reduced: make(map[int64]ast.Expr), Unguarded: sets.New[int64](), guard: guard}
}

// Traced tells the trace, if there is one, that a rule was applied.
func (n *Normalizer) Traced(rule string, before, after ast.Expr) {
	if n.Trace != nil {
		n.Trace(rule, before, after)
	}
}

// IsBool reports whether an expression is of type bool.
func (n *Normalizer) IsBool(expr ast.Expr) bool {
	return n.Write.TypeOf(expr).Kind() == types.BoolKind
}

// TypeOf is the type of a comprehension's variable where it is used, dyn if it is not
// used.
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

// NodesOf is the number of nodes of a syntax tree.
func NodesOf(expr ast.Expr) int {
	nodes := 0
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(ast.Expr) { nodes++ }))
	return nodes
}
