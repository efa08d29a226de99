// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// maxElements is how many values of a list of a device are looked at one by one.
const maxElements = 8

// quantifierOfValue reads a quantifier over a list that a device has as a condition on
// its first element, on its second one and so on, as far as there are so many. If there
// are more than can be looked at it is open.
//
//	d.peers.all(p, devices.exists(o, o.id == p))
func (a *analyzer) quantifierOfValue(c ast.ComprehensionExpr, s scope) condition {
	list := c.IterRange()
	if !isOfDevice(list, s) || !a.normal.isList(list) || a.normal.hasGuarded(c) {
		return open{}
	}
	elements := make([]ast.Expr, maxElements)
	for i := range elements {
		elements[i] = a.normal.write.Call(operators.Index, "", a.normal.write.ElementType(list), a.normal.again(list), a.normal.write.Literal(types.Int(i)))
	}
	is, _ := tree.QuantifierOf(c)
	result, ok := a.normal.conditionOnEach(c, elements, func(holds ast.Expr, place int) ast.Expr {
		return a.normal.write.Conditional(types.BoolType, a.normal.writeSizeIs(operators.Greater, overloads.GreaterInt64, list, place), holds, a.normal.write.Literal(types.Bool(is == tree.All)))
	})
	if !ok {
		return open{}
	}
	isShort := a.normal.write.And(a.normal.isFound(list), a.normal.writeSizeIs(operators.LessEquals, overloads.LessEqualsInt64, list, maxElements))
	return a.newConditional(a.condition(isShort, s), a.condition(result, s), open{})
}

// writeSizeIs compares the size of a list with a number.
func (n *normalizer) writeSizeIs(operator, overload string, list ast.Expr, number int) ast.Expr {
	return n.write.Call(operator, overload, types.BoolType, n.write.Size(n.again(list)), n.write.Literal(types.Int(number)))
}

// hasGuarded tells whether anything in a comprehension may abort.
func (n *normalizer) hasGuarded(c ast.ComprehensionExpr) bool {
	found := false
	for _, part := range []ast.Expr{c.IterRange(), c.LoopStep()} {
		tree.Visit(part, func(e ast.Expr, _ tree.Names) { found = found || n.mayAbort(e) })
	}
	return found
}
