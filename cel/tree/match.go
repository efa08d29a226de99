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

// IsCall reports whether expr calls one of the functions or operators, in either style.
func IsCall(expr ast.Expr, functions ...string) bool {
	return expr.Kind() == ast.CallKind && slices.Contains(functions, expr.AsCall().FunctionName())
}

// IsIdent reports whether expr is a variable with the name. The caller must check whether the name is hidden.
func IsIdent(expr ast.Expr, name string) bool {
	return expr.Kind() == ast.IdentKind && expr.AsIdent() == name
}

// QualifiedName returns a.b.c for a name with fields, and "" for other expressions.
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

// Literal returns the value of a literal of the type V.
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

// OnlyElement returns the element of [element]. It returns false for an optional element, [?element], which may be missing.
func OnlyElement(expr ast.Expr) (element ast.Expr, ok bool) {
	if expr.Kind() != ast.ListKind || expr.AsList().Size() != 1 || len(expr.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	return expr.AsList().Elements()[0], true
}

// Conjuncts splits an expression at its outermost "&&" and returns the operands in order. An expression without "&&" is its only
// conjunct.
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

// Member is a field or an element of a container.
type Member struct {
	Container ast.Expr
	// Name is the name of the field, or the text of a literal index. Known is false if the index is not a literal text.
	Name  string
	Known bool
	// Read is true if the part is the member itself. Otherwise the part is an optional value with the member, or reports whether the
	// member is present.
	Read bool
}

// MemberOf recognizes these forms of a member:
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
