// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// AttributeName is the domain and the name of an attribute, as an expression writes them.
type AttributeName struct{ Domain, ID string }

// IsAttribute reports whether a part of a checked expression reads the value of a device attribute. The names may be literal or
// computed. IsAttribute returns false for a presence test and for an optional access, because their types differ.
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

// NameOf returns the domain and name of the attribute if a part contains both as literals. isRead reports whether the part
// reads the attribute's value. isRead is false for an optional access and for a presence test.
func NameOf(expr ast.Expr) (name AttributeName, isRead, ok bool) {
	name, _, ok = attribute(expr)
	member, isMember := tree.MemberOf(expr)
	return name, isMember && member.Read, ok
}

// attribute returns the attribute that an expression accesses with literal names, and the expression of the attribute's device
// (of). The expression may read the attribute, access it as an optional value, or test it with has or in.
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

// labelsOf returns n if the expression is n.labels. It rejects an attribute whose name is "labels".
func labelsOf(expr ast.Expr) (of ast.Expr, ok bool) {
	if expr.Kind() != ast.SelectKind || expr.AsSelect().FieldName() != labelsField || expr.AsSelect().IsTestOnly() {
		return nil, false
	}
	_, _, isAttribute := attribute(expr)
	return expr.AsSelect().Operand(), !isAttribute
}

// attributesOf returns d if the expression is d.attributes, for any expression d.
func attributesOf(expr ast.Expr) (of ast.Expr, ok bool) {
	if expr.Kind() != ast.SelectKind || expr.AsSelect().FieldName() != attributesField || expr.AsSelect().IsTestOnly() {
		return nil, false
	}
	return expr.AsSelect().Operand(), true
}

// tested returns the key and the map of a test "'name' in container".
func tested(expr ast.Expr) (tree.Member, bool) {
	if !tree.IsCall(expr, operators.In) {
		return tree.Member{}, false
	}
	args := expr.AsCall().Args()
	name, known := tree.Literal[types.String](args[0])
	return tree.Member{Container: args[1], Name: string(name), Known: known}, true
}
