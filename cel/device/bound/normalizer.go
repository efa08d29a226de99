// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// Much can be written in several ways, and is read in one, the normal form: names of cel.bind
// are replaced by what they stand for (inline.go), and conditions on lists are written with
// quantifiers (rules.go). All of it is written down as an expression again, so that CEL can be
// asked for its leaves. The two must fail alike.

const (
	inlineBinding  = "inline-binding"
	unrollConjunct = "unroll-conjunct"
	unrollCount    = "unroll-count"
	compareSorted  = "compare-sorted"
	compareAll     = "compare-all"
)

// normalizer writes parts of an expression in their normal form. It knows of the analyzer only
// whether something is guarded.
type normalizer struct {
	// write makes parts. Those that took the place of others are in reduced, by the number
	// of what they replaced; copies counts them.
	write   *tree.Builder
	reduced map[int64]ast.Expr
	copies  int
	// unguarded are the parts, by their number, that may abort the evaluation and that
	// no guard looks after. guard reports whether one could be found for a part.
	unguarded sets.Set[int64]
	guard     func(ast.Expr, scope) bool
	// trace is told of each rule that was applied, if it is not nil.
	trace func(rule string, before, after ast.Expr)
}

func newNormalizer(expression *device.Expression, guard func(ast.Expr, scope) bool) *normalizer {
	return &normalizer{write: tree.NewBuilder(expression.AST()), reduced: make(map[int64]ast.Expr), unguarded: sets.New[int64](), guard: guard}
}

func (n *normalizer) traced(rule string, before, after ast.Expr) {
	if n.trace != nil {
		n.trace(rule, before, after)
	}
}

// isBool reports whether an expression is of type bool.
func (n *normalizer) isBool(expr ast.Expr) bool {
	return n.write.TypeOf(expr).Kind() == types.BoolKind
}

// typeOf is the type of a comprehension's variable where it is used, dyn if it is not
// used.
func (n *normalizer) typeOf(name string, of ast.ComprehensionExpr) *types.Type {
	result := types.DynType
	for _, part := range []ast.Expr{of.LoopCondition(), of.LoopStep(), of.Result()} {
		tree.Visit(part, func(e ast.Expr, hidden tree.Names) {
			if tree.IsIdent(e, name) && !hidden.Has(name) {
				result = n.write.TypeOf(e)
			}
		})
	}
	return result
}

// nodesOf is the number of nodes of a syntax tree.
func nodesOf(expr ast.Expr) int {
	nodes := 0
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(ast.Expr) { nodes++ }))
	return nodes
}
