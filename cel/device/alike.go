// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Whether all devices have in common what the first one has does not depend on which of
// them is the first:
//
//	devices.all(d, d.attributes['a'].x == devices[0].attributes['a'].x && ...)
//
// So a comparison that stands like this says nothing about the order.

// conjunctsOfAll returns what all(d, ...) demands of each device, nil for another loop.
func conjunctsOfAll(c ast.ComprehensionExpr) []ast.Expr {
	step := c.LoopStep()
	if c.HasIterVar2() || c.AccuInit().Kind() != ast.LiteralKind || c.AccuInit().AsLiteral() != types.True || !isAnd(step) {
		return nil
	}
	args := step.AsCall().Args()
	if len(args) != 2 || !isIdent(args[0], c.AccuVar()) || !isIdent(c.Result(), c.AccuVar()) {
		return nil
	}
	return conjuncts(args[1])
}

func conjuncts(expr ast.Expr) []ast.Expr {
	if !isAnd(expr) {
		return []ast.Expr{expr}
	}
	var result []ast.Expr
	for _, arg := range expr.AsCall().Args() {
		result = append(result, conjuncts(arg)...)
	}
	return result
}

func isAnd(expr ast.Expr) bool {
	return expr.Kind() == ast.CallKind && expr.AsCall().FunctionName() == operators.LogicalAnd
}

func isIdent(expr ast.Expr, name string) bool {
	return expr.Kind() == ast.IdentKind && expr.AsIdent() == name
}

// isAlike tells whether an equality compares the same thing of a device and of one with a
// constant index.
func isAlike(expr ast.Expr, device string) bool {
	if expr.Kind() != ast.CallKind || expr.AsCall().FunctionName() != operators.Equals {
		return false
	}
	left, right := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	return isSameOf(left, right, device) || isSameOf(right, left, device)
}

// isSameOf tells whether indexed is the expression with devices[n] for the device.
func isSameOf(expr, indexed ast.Expr, device string) bool {
	if expr.Kind() == ast.IdentKind && expr.AsIdent() == device {
		return isPlace(indexed)
	}
	if expr.Kind() != indexed.Kind() {
		return false
	}
	switch expr.Kind() {
	case ast.LiteralKind:
		return expr.AsLiteral().Equal(indexed.AsLiteral()) == types.True
	case ast.SelectKind:
		one, other := expr.AsSelect(), indexed.AsSelect()
		return one.FieldName() == other.FieldName() && one.IsTestOnly() == other.IsTestOnly() &&
			isSameOf(one.Operand(), other.Operand(), device)
	case ast.CallKind:
		return isSameCall(expr.AsCall(), indexed.AsCall(), device)
	default:
		return false
	}
}

func isSameCall(call, indexed ast.CallExpr, device string) bool {
	if call.FunctionName() != indexed.FunctionName() || call.IsMemberFunction() != indexed.IsMemberFunction() || len(call.Args()) != len(indexed.Args()) {
		return false
	}
	if call.IsMemberFunction() && !isSameOf(call.Target(), indexed.Target(), device) {
		return false
	}
	for i, arg := range call.Args() {
		if !isSameOf(arg, indexed.Args()[i], device) {
			return false
		}
	}
	return true
}

// isPlace recognizes devices[n].
func isPlace(expr ast.Expr) bool {
	if expr.Kind() != ast.CallKind || expr.AsCall().FunctionName() != operators.Index {
		return false
	}
	args := expr.AsCall().Args()
	return isIdent(args[0], devicesVariable) && args[1].Kind() == ast.LiteralKind
}
