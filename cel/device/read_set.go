// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// ReadSet has the attributes that an expression reads. Two devices are interchangeable for the expression if they agree in
// these attributes, and in driver, capacities and allowMultipleAllocations.
type ReadSet struct {
	// Attributes has the attributes that the expression reads with literal names.
	Attributes map[AttributeName]bool
	// All is true if the expression may read any attribute.
	All bool
}

// ReadSet returns the attributes that the expression reads. Their names must be literals, as in d.attributes['domain'].id or
// d.attributes['domain']['id'], also with has, in and optional access. Any other use of attributes sets All.
func (e *Expression) ReadSet() ReadSet { return ReadSetOf(e.AST()) }

// ReadSetOf is ReadSet for any checked expression whose devices have the fields of device selectors.
func ReadSetOf(checked *ast.AST) ReadSet {
	f := &readSet{program: checked, ReadSet: ReadSet{Attributes: make(map[AttributeName]bool)}}
	f.visit(checked.Expr())
	return f.ReadSet
}

// fieldOf returns the name of the field that an expression selects, plainly or as an optional value. Otherwise it returns "".
func fieldOf(expr ast.Expr) string {
	if expr.Kind() == ast.SelectKind {
		return expr.AsSelect().FieldName()
	}
	if !tree.IsCall(expr, operators.OptSelect) {
		return ""
	}
	name, _ := tree.Literal[types.String](expr.AsCall().Args()[1])
	return string(name)
}

// ReadsCapacity reports whether the expression may read capacities.
func (e *Expression) ReadsCapacity() bool {
	found := false
	tree.Visit(e.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		found = found || fieldOf(part) == capacityField || part.Kind() == ast.StructKind
	})
	return found
}

type readSet struct {
	ReadSet
	program *ast.AST
}

func (f *readSet) visit(expr ast.Expr) {
	if name, of, ok := attribute(expr); ok {
		f.Attributes[name] = true
		f.visit(of)
		return
	}
	if of, ok := tree.MemberOf(expr); ok && f.isUnknown(of.Container) {
		// The container may be a device or a node.
		f.All = true
		if of.Name == devicesField {
			f.Attributes[AttributeName{devicesDomain, devicesID}] = true
		}
	}
	switch fieldOf(expr) {
	case attributesField, labelsField:
		f.All = true
	case devicesField:
		f.Attributes[AttributeName{devicesDomain, devicesID}] = true
	}
	if expr.Kind() == ast.StructKind {
		f.All = true
		return
	}
	for _, part := range tree.Parts(expr) {
		f.visit(part)
	}
}

// isUnknown reports whether the type of an expression is only known at run time. It returns false for the value of an
// attribute, because such a value is never a device.
func (f *readSet) isUnknown(expr ast.Expr) bool {
	if _, _, ok := attribute(expr); ok {
		return false
	}
	if of, ok := tree.MemberOf(expr); ok && isInAttribute(of.Container) {
		return false
	}
	switch f.program.GetType(expr.ID()).Kind() {
	case types.DynKind, types.AnyKind, types.ErrorKind, types.TypeParamKind:
		return true
	default:
		return false
	}
}

// isInAttribute reports whether an expression is an attribute or an element of one.
func isInAttribute(expr ast.Expr) bool {
	if _, _, ok := attribute(expr); ok {
		return true
	}
	of, ok := tree.MemberOf(expr)
	return ok && isInAttribute(of.Container)
}
