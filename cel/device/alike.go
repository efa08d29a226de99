// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// If all devices have the same value of an attribute as the first device, all values are equal. So this expression does not
// depend on the order of the devices, although it uses an index:
//
//	devices.all(d, d.attributes['a'].x == devices[0].attributes['a'].x && ...)

// conjunctsOfAll returns the conjuncts in the body of all(d, ...). It returns nil for any other loop.
func conjunctsOfAll(c ast.ComprehensionExpr) []ast.Expr {
	is, holds := tree.QuantifierOf(c)
	if is != tree.All || c.HasIterVar2() {
		return nil
	}
	return tree.Conjuncts(holds)
}

// comparesWithIndexed reports whether an equality compares an expression of the loop's device with the same expression of
// devices[n].
func comparesWithIndexed(expr ast.Expr, device string) bool {
	if !tree.IsCall(expr, operators.Equals) {
		return false
	}
	left, right := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	return isSameOf(left, right, device) || isSameOf(right, left, device)
}

// isSameOf reports whether indexed is expr with devices[n] in place of the loop's device.
func isSameOf(expr, indexed ast.Expr, device string) bool {
	if tree.IsIdent(expr, device) {
		return isElementAt(indexed)
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
	return call.FunctionName() == indexed.FunctionName() && call.IsMemberFunction() == indexed.IsMemberFunction() &&
		slices.EqualFunc(tree.Operands(call), tree.Operands(indexed), func(one, other ast.Expr) bool { return isSameOf(one, other, device) })
}

// isElementAt reports whether an expression is devices[n] or nodes[n] with a literal n.
func isElementAt(expr ast.Expr) bool {
	if !tree.IsCall(expr, operators.Index) {
		return false
	}
	args := expr.AsCall().Args()
	return args[0].Kind() == ast.IdentKind && IsSet(args[0].AsIdent()) && args[1].Kind() == ast.LiteralKind
}
