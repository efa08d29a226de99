// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// AttributeName is the name of an attribute as expressions write it.
type AttributeName struct{ Domain, ID string }

// Footprint is what an expression reads of devices, besides their drivers and
// capacities. Two devices that agree in it can be exchanged for each other: the
// verdicts are the same.
type Footprint struct {
	// Attributes that are read by their names.
	Attributes map[AttributeName]bool
	// All: it can't be told which are read.
	All bool
}

// Footprint tells which attributes the expression reads. They are found where they are
// written in full, d.attributes['domain'].id or d.attributes['domain']['id'], with has,
// in and optional access too. Anything else that attributes are used for reads all.
func (e *Expression) Footprint() Footprint { return FootprintOf(e.AST()) }

// FootprintOf does so for any checked expression in which devices are objects with the
// fields that they have in device selectors.
func FootprintOf(checked *ast.AST) Footprint {
	f := &footprint{program: checked, Footprint: Footprint{Attributes: make(map[AttributeName]bool)}}
	f.visit(checked.Expr())
	return f.Footprint
}

type footprint struct {
	Footprint
	program *ast.AST
}

func (f *footprint) visit(expr ast.Expr) {
	if name, of, ok := attribute(expr); ok {
		f.Attributes[name] = true
		f.visit(of)
		return
	}
	if of, ok := container(expr); ok && f.isUnknown(of) {
		// It could be a device.
		f.All = true
	}
	if expr.Kind() == ast.SelectKind && expr.AsSelect().FieldName() == attributesField {
		f.All = true
	}
	f.visitParts(expr)
}

func (f *footprint) visitParts(expr ast.Expr) {
	switch expr.Kind() {
	case ast.CallKind:
		call := expr.AsCall()
		if call.IsMemberFunction() {
			f.visit(call.Target())
		}
		f.visitAll(call.Args()...)
	case ast.SelectKind:
		f.visit(expr.AsSelect().Operand())
	case ast.ListKind:
		f.visitAll(expr.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			f.visitAll(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		f.All = true
	case ast.ComprehensionKind:
		c := expr.AsComprehension()
		f.visitAll(c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
}

func (f *footprint) visitAll(exprs ...ast.Expr) {
	for _, expr := range exprs {
		f.visit(expr)
	}
}

// isUnknown tells whether the type is known at run time only. The value of an
// attribute is such a part, but it is no device.
func (f *footprint) isUnknown(expr ast.Expr) bool {
	if _, _, ok := attribute(expr); ok {
		return false
	}
	if of, ok := container(expr); ok && isInAttribute(of) {
		return false
	}
	switch f.program.GetType(expr.ID()).Kind() {
	case types.DynKind, types.AnyKind, types.ErrorKind, types.TypeParamKind:
		return true
	default:
		return false
	}
}

// isInAttribute tells whether a part is an attribute, or something in one.
func isInAttribute(expr ast.Expr) bool {
	if _, _, ok := attribute(expr); ok {
		return true
	}
	of, ok := container(expr)
	return ok && isInAttribute(of)
}

// attribute recognizes an attribute that is written in full, and of what it is one.
func attribute(expr ast.Expr) (name AttributeName, of ast.Expr, ok bool) {
	domainOf, id, ok := member(expr)
	if !ok {
		domainOf, id, ok = tested(expr)
	}
	if !ok {
		return AttributeName{}, nil, false
	}
	attributes, domain, ok := member(domainOf)
	if !ok || attributes.Kind() != ast.SelectKind || attributes.AsSelect().FieldName() != attributesField || attributes.AsSelect().IsTestOnly() {
		return AttributeName{}, nil, false
	}
	return AttributeName{domain, id}, attributes.AsSelect().Operand(), true
}

// member recognizes of.name, of['name'] and their optional forms.
func member(expr ast.Expr) (of ast.Expr, name string, ok bool) {
	switch expr.Kind() {
	case ast.SelectKind:
		return expr.AsSelect().Operand(), expr.AsSelect().FieldName(), true
	case ast.CallKind:
		call := expr.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, ok = text(call.Args()[1])
			return call.Args()[0], name, ok
		}
	}
	return nil, "", false
}

// container recognizes of what a part is taken, by whatever name or index.
func container(expr ast.Expr) (of ast.Expr, ok bool) {
	switch expr.Kind() {
	case ast.SelectKind:
		return expr.AsSelect().Operand(), true
	case ast.CallKind:
		call := expr.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			return call.Args()[0], true
		}
	}
	return nil, false
}

// tested recognizes 'name' in of.
func tested(expr ast.Expr) (of ast.Expr, name string, ok bool) {
	if expr.Kind() != ast.CallKind || expr.AsCall().FunctionName() != operators.In {
		return nil, "", false
	}
	name, ok = text(expr.AsCall().Args()[0])
	return expr.AsCall().Args()[1], name, ok
}

func text(expr ast.Expr) (string, bool) {
	if expr.Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := expr.AsLiteral().(types.String)
	return string(value), ok
}
