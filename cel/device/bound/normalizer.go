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

// normalizer writes parts of an expression in their normal form. It knows of the analyzer only
// whether something is guarded.
type normalizer struct {
	// write makes parts. Those that took the place of others are in reduced, by the number
	// of what they replaced; copies counts them.
	write   *tree.Builder
	reduced map[int64]ast.Expr
	copies  int
	// unguarded are the parts, by their number, that may abort the evaluation and that
	// no guard looks after. guard tells whether one could be found for a part.
	unguarded sets.Set[int64]
	guard     func(ast.Expr, scope) bool
	// trace is told of each rule that was applied, if it is not nil.
	trace func(rule string, before, after ast.Expr)
}

func newNormalizer(expression *device.Expression, guard func(ast.Expr, scope) bool) *normalizer {
	return &normalizer{write: tree.NewBuilder(expression.AST()), reduced: make(map[int64]ast.Expr), unguarded: sets.New[int64](), guard: guard}
}

// rewrite writes a condition another way. It is false if there is none.
func (n *normalizer) rewrite(expr ast.Expr, s scope) (ast.Expr, bool) {
	if n.copies++; n.copies > maxCopies {
		return nil, false
	}
	before := n.mayAbort(expr)
	result, ok := n.rewritten(expr, s)
	if !ok {
		return nil, false
	}
	n.replace(expr, result, s)
	if before {
		// What CEL evaluates is the expression, after all.
		n.unguarded.Insert(expr.ID())
	}
	return result, true
}

// rewritten applies the first rule that fits.
func (n *normalizer) rewritten(expr ast.Expr, s scope) (ast.Expr, bool) {
	_, single := references(expr, s)
	for _, r := range rules {
		if single && r.setOnly {
			continue
		}
		if result, ok := r.apply(n, expr, s); ok {
			n.traced(r.name, expr, result)
			return result, true
		}
	}
	return nil, false
}

func (n *normalizer) traced(rule string, before, after ast.Expr) {
	if n.trace != nil {
		n.trace(rule, before, after)
	}
}

// isBool tells whether an expression is of type bool.
func (n *normalizer) isBool(expr ast.Expr) bool {
	return n.write.TypeOf(expr).Kind() == types.BoolKind
}
