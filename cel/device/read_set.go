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
		f.read(name, of)
		f.visit(of)
		return
	}
	if of, ok := tree.MemberOf(expr); ok && f.isUnknown(of.Container) {
		// The container could be a device, a node or a pod.
		f.All = true
		f.field(of.Name, nil)
	}
	f.field(fieldOf(expr), expr)
	if expr.Kind() == ast.StructKind {
		f.All = true
		return
	}
	for _, part := range tree.Parts(expr) {
		f.visit(part)
	}
}

// read adds an attribute or a label. A label belongs to a node or to a pod, or to either of them if the type is unknown.
func (f *readSet) read(name AttributeName, of ast.Expr) {
	isOfPod := name.Domain == labelsDomain && f.isPod(of)
	if !isOfPod {
		f.Attributes[name] = true
	}
	if isOfPod || name.Domain == labelsDomain && f.isUnknown(of) {
		f.Attributes[AttributeName{podLabelsDomain, name.ID}] = true
	}
}

// field adds the properties that are read by a field with this name. expr is the selection of the field, or nil if the type of its
// operand is unknown.
func (f *readSet) field(name string, expr ast.Expr) {
	isOfPod := false
	if expr != nil {
		if of, ok := operandOf(expr); ok {
			isOfPod = f.isPod(of)
		}
	}
	switch name {
	case attributesField:
		f.All = true
	case labelsField:
		f.All = f.All || !isOfPod
		if isOfPod || expr == nil {
			f.Attributes[AttributeName{podLabelsDomain, anyPodLabel}] = true
		}
	case devicesField:
		f.Attributes[AttributeName{devicesDomain, devicesID}] = true
	case podField:
		f.Attributes[AttributeName{podsDomain, podsID}], f.Attributes[AttributeName{podsDomain, onlyPodID}] = true, true
	case podsField:
		f.Attributes[AttributeName{podsDomain, podsID}] = true
	case indexField:
		if isOfPod || expr == nil {
			f.Attributes[AttributeName{podsDomain, podIndexID}] = true
		}
	}
}

// isPod reports whether the type of an expression is a pod, or an optional pod.
func (f *readSet) isPod(expr ast.Expr) bool {
	t := f.program.GetType(expr.ID())
	if t.Kind() == types.OpaqueKind && len(t.Parameters()) == 1 {
		t = t.Parameters()[0]
	}
	return t.TypeName() == podType.TypeName()
}

// operandOf returns the operand of a selection, also of an optional one.
func operandOf(expr ast.Expr) (of ast.Expr, ok bool) {
	if expr.Kind() == ast.SelectKind {
		return expr.AsSelect().Operand(), true
	}
	if tree.IsCall(expr, operators.OptSelect) {
		return expr.AsCall().Args()[0], true
	}
	return nil, false
}

// isUnknown reports whether the type is only available at run time. It is false for the value of an attribute, which is never a
// device.
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
