// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// AttributeName is the name of an attribute as expressions write it.
type AttributeName struct{ Domain, ID string }

// IsAttribute reports whether a part of a checked expression reads an attribute of a device,
// by whatever names. What asks whether there is one, or reads it as an optional value, is no
// attribute: it is of another type.
func IsAttribute(checked *ast.AST, expr ast.Expr) bool {
	id, ok := tree.MemberOf(expr)
	if !ok || !id.Read {
		return false
	}
	domain, ok := tree.MemberOf(id.Container)
	if !ok || !domain.Read {
		return false
	}
	of, ok := attributesOf(domain.Container)
	return ok && checked.GetType(of.ID()).Kind() == types.StructKind
}

// NameOf is the name of the attribute that a part speaks of, if it is written in full. isRead: the
// part is the attribute itself, and not an optional value or what asks whether there is one.
func NameOf(expr ast.Expr) (name AttributeName, isRead, ok bool) {
	name, _, ok = attribute(expr)
	member, isMember := tree.MemberOf(expr)
	return name, isMember && member.Read, ok
}

// attribute recognizes an attribute that is written in full, and of what it is one. It may be
// read, also as an optional value, or asked for with has or in.
func attribute(expr ast.Expr) (name AttributeName, of ast.Expr, ok bool) {
	id, ok := tree.MemberOf(expr)
	if !ok {
		id, ok = tested(expr)
	}
	if !ok || !id.Known {
		return AttributeName{}, nil, false
	}
	if of, ok := labelsOf(id.Container); ok {
		return AttributeName{labelsDomain, id.Name}, of, true
	}
	domain, ok := tree.MemberOf(id.Container)
	if !ok || !domain.Known {
		return AttributeName{}, nil, false
	}
	of, ok = attributesOf(domain.Container)
	return AttributeName{domain.Name, id.Name}, of, ok
}

// labelsOf recognizes n.labels, which is no attribute of that name.
func labelsOf(expr ast.Expr) (of ast.Expr, ok bool) {
	if expr.Kind() != ast.SelectKind || expr.AsSelect().FieldName() != labelsField || expr.AsSelect().IsTestOnly() {
		return nil, false
	}
	_, _, isAttribute := attribute(expr)
	return expr.AsSelect().Operand(), !isAttribute
}

// attributesOf recognizes d.attributes, d being anything.
func attributesOf(expr ast.Expr) (of ast.Expr, ok bool) {
	if expr.Kind() != ast.SelectKind || expr.AsSelect().FieldName() != attributesField || expr.AsSelect().IsTestOnly() {
		return nil, false
	}
	return expr.AsSelect().Operand(), true
}

// tested recognizes 'name' in of.
func tested(expr ast.Expr) (tree.Member, bool) {
	if !tree.IsCall(expr, operators.In) {
		return tree.Member{}, false
	}
	args := expr.AsCall().Args()
	name, known := tree.Literal[types.String](args[0])
	return tree.Member{Container: args[1], Name: string(name), Known: known}, true
}
