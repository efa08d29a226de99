// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celset/celset/cel/tree"
)

// Position is a position in the text of an expression, counted from 1. It is zero if the position is unknown.
type Position struct{ Line, Column int }

// OrderDependence returns the first position where an expression uses the order of the devices:
//
//  1. the index of a device;
//  2. the first, last or following elements of a list of devices;
//  3. a comparison of two lists of devices;
//  4. an index of an element, except in a comparison with another index.
//
// The verdict may depend on the order then, but the search tries a set in one order only. Only the author can know that the
// order doesn't matter. One use is recognized as harmless: a comparison of every device with the first one (alike.go).
func (e *Expression) OrderDependence() (Position, bool) {
	o := orderReader{scope: tree.Scope[orderRole]{devicesVariable: {deviceOrder}, nodesVariable: {deviceOrder}}}
	o.visit(e.AST().Expr())
	if o.found == nil {
		return Position{}, false
	}
	at := e.AST().SourceInfo().GetStartLocation(o.found.ID())
	if at.Line() <= 0 {
		return Position{}, true
	}
	return Position{at.Line(), at.Column() + 1}, true
}

// orderRole classifies a variable or an expression by its relation to the order of the devices.
type orderRole int

const (
	noOrder orderRole = iota
	// deviceOrder marks a list in the order of the devices.
	deviceOrder
	// deviceIndex marks the index of an element of such a list.
	deviceIndex
)

// orderReader finds the first subexpression whose result depends on the order of the devices.
type orderReader struct {
	// scope holds the variables of the expression. A variable of the environment that is not in scope is noOrder.
	scope tree.Scope[orderRole]
	found ast.Expr
}

func (o *orderReader) report(expr ast.Expr) {
	if o.found == nil {
		o.found = expr
	}
}

// visit returns the meaning of an expression.
func (o *orderReader) visit(expr ast.Expr) orderRole {
	switch expr.Kind() {
	case ast.IdentKind:
		is, _ := o.scope.Lookup(expr.AsIdent())
		return is
	case ast.SelectKind:
		o.visit(expr.AsSelect().Operand())
	case ast.CallKind:
		return o.call(expr)
	case ast.ListKind, ast.MapKind:
		for _, part := range tree.Parts(expr) {
			o.value(part)
		}
	case ast.ComprehensionKind:
		return o.comprehension(expr.AsComprehension())
	}
	return noOrder
}

// value visits an expression whose result is used as a value. It reports the expression if that value is the index of a device.
func (o *orderReader) value(expr ast.Expr) orderRole {
	is := o.visit(expr)
	if is == deviceIndex {
		o.report(expr)
	}
	return is
}

// keepsOrder lists functions whose result keeps the order of a list, or reverses it. asksOrder lists functions whose result
// depends on the order of a list.
var (
	keepsOrder = []string{operators.Add, operators.Conditional, "reverse", "distinct", "flatten", "dyn"}
	asksOrder  = []string{operators.Index, operators.OptIndex, "first", "last", "slice", "indexOf", "lastIndexOf", "isSorted", "join"}
)

func (o *orderReader) call(expr ast.Expr) orderRole {
	call := expr.AsCall()
	function := call.FunctionName()
	if tree.IsCall(expr, operators.Equals, operators.NotEquals) {
		o.equality(expr)
		return noOrder
	}
	result := noOrder
	for i, operand := range tree.Operands(call) {
		isOrdered := o.value(operand) == deviceOrder
		if isOrdered && i == 0 && slices.Contains(asksOrder, function) {
			o.report(expr)
		}
		if isOrdered && slices.Contains(keepsOrder, function) {
			result = deviceOrder
		}
	}
	return result
}

// equality reports order-dependent comparisons. Equal indices mean equal elements, which needs no order. A comparison of two
// lists depends on their order, unless one list is empty.
func (o *orderReader) equality(expr ast.Expr) {
	left, right := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	of, and := o.visit(left), o.visit(right)
	switch {
	case of == deviceIndex && and == deviceIndex:
	case of == deviceIndex, and == deviceIndex:
		o.report(expr)
	case of == deviceOrder && !tree.IsEmptyList(right), and == deviceOrder && !tree.IsEmptyList(left):
		o.report(expr)
	}
}

// comprehension visits an expanded macro: a loop with an accumulator. If the accumulator is a list, the result is in the order of
// the loop's range.
func (o *orderReader) comprehension(c ast.ComprehensionExpr) orderRole {
	over := o.value(c.IterRange())
	if over == deviceOrder && c.IterRange().Kind() == ast.IdentKind && IsSet(c.IterRange().AsIdent()) && !IsSet(c.IterVar()) {
		if demanded := conjunctsOfAll(c); demanded != nil {
			o.all(demanded, c.IterVar())
			return noOrder
		}
	}
	begin := o.value(c.AccuInit())
	o.scope.Declare(c.AccuVar(), begin)
	first := noOrder
	if c.HasIterVar2() && over == deviceOrder {
		first = deviceIndex
	}
	o.scope.Declare(c.IterVar(), first)
	if c.HasIterVar2() {
		o.scope.Declare(c.IterVar2(), noOrder)
	}
	o.visit(c.LoopCondition())
	o.visit(c.LoopStep())
	o.scope.Forget(tree.IterVars(c)...)
	is := o.visit(c.Result())
	o.scope.Forget(c.AccuVar())
	if over == deviceOrder && c.AccuInit().Kind() == ast.ListKind {
		return deviceOrder
	}
	return is
}

// all visits the conjuncts in the body of an all() over the devices.
func (o *orderReader) all(conjuncts []ast.Expr, device string) {
	o.scope.Declare(device, noOrder)
	for _, conjunct := range conjuncts {
		if !comparesWithIndexed(conjunct, device) {
			o.value(conjunct)
		}
	}
	o.scope.Forget(device)
}
