// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/celset/celset/cel/tree"
)

// ShapeOf returns the text of a part with numbers for its free variables. Two parts have the same shape if they differ only in
// the names of free variables.
func ShapeOf(expr ast.Expr, free []Variable) string {
	w := &shapeWriter{numbers: make(tree.Scope[int], len(free))}
	for i, v := range free {
		w.numbers.Declare(v.Name, i)
	}
	w.write(expr)
	return w.String()
}

const ofLoop = -1

type shapeWriter struct {
	strings.Builder
	// numbers maps a free variable to its index in free, and a variable of a loop inside the part to ofLoop.
	numbers tree.Scope[int]
}

func (w *shapeWriter) write(expr ast.Expr) {
	switch expr.Kind() {
	case ast.LiteralKind:
		fmt.Fprintf(w, "%T(%q)", expr.AsLiteral(), fmt.Sprint(expr.AsLiteral().Value()))
	case ast.IdentKind:
		w.name(expr.AsIdent())
	case ast.SelectKind:
		selection := expr.AsSelect()
		fmt.Fprintf(w, "select[%t %q](", selection.IsTestOnly(), selection.FieldName())
		w.write(selection.Operand())
		w.WriteByte(')')
	case ast.CallKind:
		call := expr.AsCall()
		fmt.Fprintf(w, "call[%t %q](", call.IsMemberFunction(), call.FunctionName())
		if call.IsMemberFunction() {
			w.all(call.Target())
		}
		w.all(call.Args()...)
		w.WriteByte(')')
	case ast.ListKind:
		fmt.Fprintf(w, "list%v(", expr.AsList().OptionalIndices())
		w.all(expr.AsList().Elements()...)
		w.WriteByte(')')
	case ast.ComprehensionKind:
		w.comprehension(expr.AsComprehension())
	default:
		// Maps and structs are rare, so each gets a unique shape with its ID.
		fmt.Fprintf(w, "expression[%d]", expr.ID())
	}
}

func (w *shapeWriter) all(exprs ...ast.Expr) {
	for _, expr := range exprs {
		w.write(expr)
		w.WriteByte(',')
	}
}

func (w *shapeWriter) name(name string) {
	if number, declared := w.numbers.Lookup(name); declared && number != ofLoop {
		fmt.Fprintf(w, "$%d", number)
		return
	}
	fmt.Fprintf(w, "%q", name)
}

// comprehension writes a comprehension. The variables of the comprehension hide free variables with the same name.
func (w *shapeWriter) comprehension(c ast.ComprehensionExpr) {
	fmt.Fprintf(w, "loop[%q %q %q](", c.IterVar(), c.IterVar2(), c.AccuVar())
	w.all(c.IterRange(), c.AccuInit())
	w.numbers.Declare(c.AccuVar(), ofLoop)
	for _, name := range tree.IterVars(c) {
		w.numbers.Declare(name, ofLoop)
	}
	w.all(c.LoopCondition(), c.LoopStep())
	w.numbers.Forget(tree.IterVars(c)...)
	w.all(c.Result())
	w.numbers.Forget(c.AccuVar())
	w.WriteByte(')')
}
