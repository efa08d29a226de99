// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

const (
	// variablesField is the field of an element under which expressions read its variables.
	variablesField = "variables"

	// boundElement is the name of the element in substituted variables. It is not a valid identifier, so that no expression can use
	// it.
	boundElement = "@element"
)

// writer substitutes variables in expressions by their values.
type writer struct {
	factory ast.ExprFactory
	names   []string
	// values maps each variable so far to its expression. In the expression, the element has the name [boundElement].
	values map[string]ast.Expr
	// parts is the total number of nodes after substitution. It is limited, because a variable that reads the previous variable
	// twice doubles its size.
	parts int
}

func newWriter() *writer {
	return &writer{factory: ast.NewExprFactory(), values: map[string]ast.Expr{}}
}

func (w *writer) add(name string, value ast.Expr) {
	w.names = append(w.names, name)
	w.values[name] = value
}

// variableRead is a subexpression that reads a variable: at is the subexpression, and of is the element with the variable.
type variableRead struct {
	at, of ast.Expr
	name   string
}

// substitute replaces each read of a variable by the variable's expression, in place. An expression reads a variable of an
// element e as e.variables.x. A variable itself reads the variables of its own element as variables.x.
func (w *writer) substitute(text string, parsed *cel.Ast, isVariable bool) *Error {
	syntax := parsed.NativeRep()
	info, next := syntax.SourceInfo(), ast.MaxID(syntax)
	refuse := func(reason Reason, at ast.Expr, format string, args ...any) *Error {
		return positioned(reason, text, info.GetStartLocation(at.ID()), fmt.Sprintf(format, args...))
	}
	var reads []variableRead
	tree.Visit(syntax.Expr(), func(part ast.Expr, hidden tree.Names) {
		w.parts++
		if r, ok := w.readOf(part, hidden); ok {
			reads = append(reads, r)
		}
	})
	// Go backwards, because the element of a read may itself contain reads, and these come later in the list.
	for i := len(reads) - 1; i >= 0; i-- {
		r := reads[i]
		value, known := w.values[r.name]
		switch {
		case r.at.AsSelect().IsTestOnly():
			return refuse(ReasonInvalid, r.at, "has() can't test a variable, because it always exists: test the attribute that %s reads", r.name)
		case !known && len(w.names) == 0:
			return refuse(ReasonInvalid, r.at, "there is no variable %s before this one: define it earlier", r.name)
		case !known:
			return refuse(ReasonInvalid, r.at, "there is no variable %s, only %s", r.name, strings.Join(w.names, ", "))
		case tree.IsIdent(r.of, boundElement) && !isVariable:
			return refuse(ReasonInvalid, r.at, "a variable belongs to one element: write d.variables.%s, where d is the element of a loop", r.name)
		}
		if w.parts += count(value); w.parts > MaxNodes {
			return refuse(ReasonTooLong, r.at, "the expression has more than %d parts after variables are expanded: read variables less often", MaxNodes)
		}
		at, _ := info.GetOffsetRange(r.at.ID())
		asItWas := w.factory.NewSelect(0, w.factory.CopyExpr(r.at.AsSelect().Operand()), r.name)
		r.at.SetKindCase(w.valueOf(value, r.of, func(int64) int64 {
			next++
			info.SetOffsetRange(next, at)
			return next
		}))
		// Record the original text, as CEL does for macros, so that a text made from the tree shows the read, not its
		// substitution.
		info.SetMacroCall(r.at.ID(), asItWas)
	}
	return nil
}

func (w *writer) readOf(part ast.Expr, hidden tree.Names) (variableRead, bool) {
	if part.Kind() != ast.SelectKind {
		return variableRead{}, false
	}
	from := part.AsSelect().Operand()
	switch {
	case tree.IsIdent(from, variablesField) && !hidden.Has(variablesField):
		return variableRead{part, w.factory.NewIdent(0, boundElement), part.AsSelect().FieldName()}, true
	case from.Kind() == ast.SelectKind && from.AsSelect().FieldName() == variablesField && !from.AsSelect().IsTestOnly():
		return variableRead{part, from.AsSelect().Operand(), part.AsSelect().FieldName()}, true
	default:
		return variableRead{}, false
	}
}

// valueOf returns the expression of a variable, with the given element in place of boundElement. If element is not a plain
// name, or if a loop in the variable declares the same name, valueOf binds element to boundElement instead.
func (w *writer) valueOf(value, element ast.Expr, number ast.IDGenerator) ast.Expr {
	result := w.factory.CopyExpr(value)
	result.RenumberIDs(number)
	if element.Kind() == ast.IdentKind && !declares(value, element.AsIdent()) {
		rename(result, boundElement, element.AsIdent())
		return result
	}
	part := func(e ast.Expr) ast.Expr {
		e.RenumberIDs(number)
		return e
	}
	return w.factory.NewComprehension(0, part(w.factory.NewList(0, nil, nil)), "#unused", boundElement, element,
		part(w.factory.NewLiteral(0, types.False)), part(w.factory.NewIdent(0, boundElement)), result)
}

// declares reports whether a loop in an expression declares the name.
func declares(expr ast.Expr, name string) bool {
	found := false
	tree.Visit(expr, func(_ ast.Expr, hidden tree.Names) { found = found || hidden.Has(name) })
	return found
}

func count(expr ast.Expr) int {
	parts := 0
	tree.Visit(expr, func(ast.Expr, tree.Names) { parts++ })
	return parts
}
