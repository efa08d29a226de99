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
	if !isOfDevice(list, s) || !a.isList(list) || a.hasGuarded(c) {
		return open{}
	}
	elements := make([]ast.Expr, maxElements)
	for i := range elements {
		elements[i] = a.write.Call(operators.Index, "", a.write.ElementType(list), a.again(list), a.write.Literal(types.Int(i)))
	}
	is, _ := tree.QuantifierOf(c)
	result, ok := a.conditionOnEach(c, elements, func(holds ast.Expr, place int) ast.Expr {
		return a.write.Conditional(types.BoolType, a.writeSizeIs(operators.Greater, overloads.GreaterInt64, list, place), holds, a.write.Literal(types.Bool(is == tree.All)))
	})
	if !ok {
		return open{}
	}
	isShort := a.write.And(a.isFound(list), a.writeSizeIs(operators.LessEquals, overloads.LessEqualsInt64, list, maxElements))
	return newConditional(a.condition(isShort, s), a.condition(result, s), open{})
}

// writeSizeIs compares the size of a list with a number.
func (a *analyzer) writeSizeIs(operator, overload string, list ast.Expr, number int) ast.Expr {
	size := a.write.Call("size", "", types.IntType, a.again(list))
	return a.write.Call(operator, overload, types.BoolType, size, a.write.Literal(types.Int(number)))
}

// hasGuarded tells whether anything in a comprehension may abort.
func (a *analyzer) hasGuarded(c ast.ComprehensionExpr) bool {
	found := false
	for _, part := range []ast.Expr{c.IterRange(), c.LoopStep()} {
		tree.Visit(part, func(e ast.Expr, _ tree.Names) { found = found || a.mayAbort(e) })
	}
	return found
}
