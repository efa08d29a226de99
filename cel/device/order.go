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
// In these cases the verdict may depend on the order, but the search tries only one order of a set. Only the author can decide
// that the order doesn't matter. One use is recognized as harmless: a comparison of every device with the first device
// (alike.go).
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

// orderRole says how a variable or an expression depends on the order of the devices.
type orderRole int

const (
	noOrder orderRole = iota
	// deviceOrder marks a list in the order of the devices.
	deviceOrder
	// deviceIndex marks the index of an element of such a list.
	deviceIndex
)

// orderReader finds the first subexpression whose value depends on the order of the devices.
type orderReader struct {
	// scope has the roles of the variables in scope. Variables of the environment that are not in scope have the role noOrder.
	scope tree.Scope[orderRole]
	found ast.Expr
}

func (o *orderReader) report(expr ast.Expr) {
	if o.found == nil {
		o.found = expr
	}
}

// visit returns the role of an expression, and reports order dependence inside it.
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

// value visits an expression whose result is used as a value, and reports the expression if the value is the index of a device.
func (o *orderReader) value(expr ast.Expr) orderRole {
	is := o.visit(expr)
	if is == deviceIndex {
		o.report(expr)
	}
	return is
}

// keepsOrder has the functions that return a list in the order of their operand, or in reverse order. asksOrder has the
// functions whose value depends on the order of a list.
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

// equality reports a comparison that depends on the order. Comparing two indices does not, because equal indices mean equal
// elements. Comparing two lists does, unless one of them is empty.
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

// comprehension visits a loop, which is an expanded macro. If the loop builds a list, the list has the order of the loop's
// range.
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
