// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// ReadSet is what an expression reads of devices, besides their drivers and
// capacities. Two devices that agree in it can be exchanged for each other: the
// verdicts are the same.
type ReadSet struct {
	// Attributes that are read by their names.
	Attributes map[AttributeName]bool
	// All: it can't be told which are read.
	All bool
}

// ReadSet tells which attributes the expression reads. They are found where they are
// written in full, d.attributes['domain'].id or d.attributes['domain']['id'], with has,
// in and optional access too. Anything else that attributes are used for reads all.
func (e *Expression) ReadSet() ReadSet { return ReadSetOf(e.AST()) }

// ReadSetOf does so for any checked expression in which devices are objects with the
// fields that they have in device selectors.
func ReadSetOf(checked *ast.AST) ReadSet {
	f := &readSet{program: checked, ReadSet: ReadSet{Attributes: make(map[AttributeName]bool)}}
	f.visit(checked.Expr())
	return f.ReadSet
}

// fieldOf is the name of the field that is selected, also as an optional value, "" if none is.
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
		// It could be a device, or a node.
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

// isUnknown reports whether the type is known at run time only. The value of an
// attribute is such a part, but it is no device.
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

// isInAttribute reports whether a part is an attribute, or something in one.
func isInAttribute(expr ast.Expr) bool {
	if _, _, ok := attribute(expr); ok {
		return true
	}
	of, ok := tree.MemberOf(expr)
	return ok && isInAttribute(of.Container)
}
