// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"

	"github.com/celset/celset/cel/tree"
)

// WithoutVariables returns the text of an expression that means the same without variables: its
// syntax tree is that of the compiled expression, where they are written out, but for the names of
// loops. The error is an [*Error]; there is one too if the text would be too long, or if none has
// that tree.
func (e *Environment) WithoutVariables(ctx context.Context, expression string, variables ...Variable) (string, error) {
	with, err := e.Compile(ctx, expression, variables...)
	if err != nil || len(variables) == 0 {
		return expression, err
	}
	text, err := e.inline(expression, variables)
	if err != nil {
		return "", &Error{Reason: ReasonInvalid, Expression: expression, Message: err.Error(), err: err}
	}
	without, err := e.Compile(ctx, text)
	if err != nil {
		return "", err
	}
	if !tree.Alike(with.AST().Expr(), without.AST().Expr()) {
		return "", &Error{Reason: ReasonInvalid, Expression: expression, Message: "no text of an expression without variables means the same"}
	}
	return text, nil
}

// inline works on trees in which macros are calls, as they were written: only of these a text can be
// made that has what was put in. What it does not know of names that loops hide, comparing finds.
func (e *Environment) inline(expression string, variables []Variable) (string, error) {
	plain, err := parser.NewParser(parser.EnableOptionalSyntax(true))
	if err != nil {
		return "", fmt.Errorf("parse without macros: %w", err)
	}
	parse := func(text string) (*ast.AST, error) {
		parsed, errs := plain.Parse(common.NewTextSource(text))
		if len(errs.GetErrors()) > 0 {
			return nil, fmt.Errorf("parse without macros: %s", errs.ToDisplayString())
		}
		return parsed, nil
	}
	in := &inliner{factory: ast.NewExprFactory(), element: e.element.Name, values: map[string]ast.Expr{}}
	for _, v := range variables {
		parsed, err := parse(v.Expression)
		if err != nil {
			return "", err
		}
		in.replace(parsed.Expr())
		in.values[v.Name] = parsed.Expr()
	}
	parsed, err := parse(expression)
	if err != nil {
		return "", err
	}
	in.taken = append(identsOf(parsed.Expr()), in.element)
	for _, value := range in.values {
		in.taken = append(in.taken, identsOf(value)...)
	}
	in.replace(parsed.Expr())
	if in.parts > MaxNodes {
		return "", fmt.Errorf("with what is read of variables there are more than %d parts: read variables less often", MaxNodes)
	}
	return parser.Unparse(parsed.Expr(), parsed.SourceInfo())
}

// inliner puts variables where they are read.
type inliner struct {
	factory ast.ExprFactory
	// element is what variables call the element.
	element string
	values  map[string]ast.Expr
	// taken are names that can't be given to elements.
	taken []string
	parts int
}

func (in *inliner) replace(expr ast.Expr) {
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(part ast.Expr) {
		if in.parts++; in.parts > MaxNodes || part.Kind() != ast.SelectKind {
			return
		}
		value, known := in.values[part.AsSelect().FieldName()]
		if from := part.AsSelect().Operand(); !known {
			return
		} else if tree.IsIdent(from, variablesField) {
			in.put(part, in.factory.CopyExpr(value))
		} else if from.Kind() == ast.SelectKind && from.AsSelect().FieldName() == variablesField {
			in.put(part, in.valueOf(value, from.AsSelect().Operand()))
		}
	}))
}

func (in *inliner) put(at, value ast.Expr) {
	in.parts += len(tree.Parts(value))
	at.SetKindCase(value)
}

// valueOf names an element that is more than a name, or whose name the variable uses.
func (in *inliner) valueOf(value, element ast.Expr) ast.Expr {
	result := in.factory.CopyExpr(value)
	if tree.IsIdent(element, in.element) {
		return result
	}
	if element.Kind() == ast.IdentKind && !slices.Contains(identsOf(value), element.AsIdent()) {
		in.rename(result, element.AsIdent())
		return result
	}
	name := in.element
	for i := 1; slices.Contains(in.taken, name); i++ {
		name = fmt.Sprint(in.element, i)
	}
	in.rename(result, name)
	return in.factory.NewMemberCall(0, "bind", in.factory.NewIdent(0, "cel"), in.factory.NewIdent(0, name), element, result)
}

func (in *inliner) rename(value ast.Expr, name string) {
	ast.PostOrderVisit(value, ast.NewExprVisitor(func(part ast.Expr) {
		if tree.IsIdent(part, in.element) {
			part.SetKindCase(in.factory.NewIdent(part.ID(), name))
		}
	}))
}

func identsOf(expr ast.Expr) []string {
	var names []string
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(part ast.Expr) {
		if part.Kind() == ast.IdentKind {
			names = append(names, part.AsIdent())
		}
	}))
	return names
}
