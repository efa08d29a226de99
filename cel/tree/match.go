// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// IsCall reports whether expr calls one of the functions or operators, as f(x) or as x.f().
func IsCall(expr ast.Expr, functions ...string) bool {
	return expr.Kind() == ast.CallKind && slices.Contains(functions, expr.AsCall().FunctionName())
}

// IsIdent reports whether expr is an identifier with the name. The caller must check whether a loop variable hides the name.
func IsIdent(expr ast.Expr, name string) bool {
	return expr.Kind() == ast.IdentKind && expr.AsIdent() == name
}

// QualifiedName returns the text a.b.c of an identifier with fields, and "" for other expressions.
func QualifiedName(expr ast.Expr) string {
	switch expr.Kind() {
	case ast.IdentKind:
		return expr.AsIdent()
	case ast.SelectKind:
		if of := QualifiedName(expr.AsSelect().Operand()); of != "" && !expr.AsSelect().IsTestOnly() {
			return of + "." + expr.AsSelect().FieldName()
		}
	}
	return ""
}

// Literal returns the value of a literal. ok is false if expr is not a literal of the type V.
func Literal[V ref.Val](expr ast.Expr) (value V, ok bool) {
	if expr.Kind() == ast.LiteralKind {
		value, ok = expr.AsLiteral().(V)
	}
	return value, ok
}

// IsLiteral reports whether expr is a literal with the type and value.
func IsLiteral[V interface {
	comparable
	ref.Val
}](expr ast.Expr, value V) bool {
	literal, ok := Literal[V](expr)
	return ok && literal == value
}

// IsEmptyList reports whether expr is [].
func IsEmptyList(expr ast.Expr) bool {
	return expr.Kind() == ast.ListKind && expr.AsList().Size() == 0
}

// OnlyElement returns the element of the list [element]. It returns false for [?element], because an optional element may be
// missing.
func OnlyElement(expr ast.Expr) (element ast.Expr, ok bool) {
	if expr.Kind() != ast.ListKind || expr.AsList().Size() != 1 || len(expr.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	return expr.AsList().Elements()[0], true
}

// Conjuncts splits an expression at its outermost "&&" and returns the operands in order. If there is no "&&", the only
// conjunct is the whole expression.
func Conjuncts(expr ast.Expr) []ast.Expr {
	if !IsCall(expr, operators.LogicalAnd) {
		return []ast.Expr{expr}
	}
	var result []ast.Expr
	for _, arg := range expr.AsCall().Args() {
		result = append(result, Conjuncts(arg)...)
	}
	return result
}

// Member is an access to a field or an element of a container.
type Member struct {
	Container ast.Expr
	// Name is the name of the field, or the text of the index if the index is a literal text. Known is false for any other
	// index.
	Name  string
	Known bool
	// Read is true if the value of the access is the member itself. Otherwise the access returns an optional value, or tests
	// whether the member is present.
	Read bool
}

// MemberOf recognizes these accesses to a member:
//
//	of.name     of['name']     of[index]     read
//	of.?name    of[?'name']    of[?index]    optional
//	has(of.name)                             presence test
//
// It does not recognize "'name' in of", because "of" may be a list.
func MemberOf(expr ast.Expr) (Member, bool) {
	switch {
	case expr.Kind() == ast.SelectKind:
		selection := expr.AsSelect()
		return Member{selection.Operand(), selection.FieldName(), true, !selection.IsTestOnly()}, true
	case IsCall(expr, operators.Index, operators.OptIndex, operators.OptSelect):
		args := expr.AsCall().Args()
		name, known := Literal[types.String](args[1])
		return Member{args[0], string(name), known, IsCall(expr, operators.Index)}, true
	default:
		return Member{}, false
	}
}
