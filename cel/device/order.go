// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/celset/celset/cel/tree"
)

// Place is a place in the text of an expression, both counted from 1; zero if it is not
// known.
type Place struct{ Line, Column int }

// OrderDependence finds where an expression first speaks of the order of the devices:
// of one by its index, of a list of them by its first, last or following elements, of two
// lists as equal, or of an index by more than its being another's. The verdict may depend
// on the order then, and the search tries a set in one order only. That it need not is
// for the author to know, but for all devices having what the first one has ([isAlike]).
func (e *Expression) OrderDependence() (Place, bool) {
	o := orderReader{scope: tree.Scope[meaning]{devicesVariable: {deviceOrder}, nodesVariable: {deviceOrder}}}
	o.visit(e.AST().Expr())
	if o.found == nil {
		return Place{}, false
	}
	at := e.AST().SourceInfo().GetStartLocation(o.found.ID())
	if at.Line() <= 0 {
		return Place{}, true
	}
	return Place{at.Line(), at.Column() + 1}, true
}

// meaning is what a variable or a part has to do with the order.
type meaning int

const (
	noOrder meaning = iota
	// deviceOrder is a list in the order of the devices.
	deviceOrder
	// deviceIndex is the index of an element of such a list.
	deviceIndex
)

// orderReader looks for the first part that depends on the order.
type orderReader struct {
	// scope has the variables; those of the environment that it does not have have no
	// meaning.
	scope tree.Scope[meaning]
	found ast.Expr
}

func (o *orderReader) report(expr ast.Expr) {
	if o.found == nil {
		o.found = expr
	}
}

// visit returns what the part is.
func (o *orderReader) visit(expr ast.Expr) meaning {
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

// value visits a part where an index is looked at as a number.
func (o *orderReader) value(expr ast.Expr) meaning {
	is := o.visit(expr)
	if is == deviceIndex {
		o.report(expr)
	}
	return is
}

// Functions that make a list in another order, or none, of a list; that keep the order;
// and that ask for it.
var (
	keepsOrder = []string{operators.Add, operators.Conditional, "reverse", "distinct", "flatten", "dyn"}
	asksOrder  = []string{operators.Index, operators.OptIndex, "first", "last", "slice", "indexOf", "lastIndexOf", "isSorted", "join"}
)

func (o *orderReader) call(expr ast.Expr) meaning {
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

// equality of two indices tells that elements are the same. That of a list with another
// speaks of their order, unless the other is empty.
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

// comprehension is what macros are expanded to: a loop with an accumulator. One whose
// accumulator is a list makes it in the order of what it loops over.
func (o *orderReader) comprehension(c ast.ComprehensionExpr) meaning {
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

// all devices are to satisfy each of the conjuncts.
func (o *orderReader) all(conjuncts []ast.Expr, device string) {
	o.scope.Declare(device, noOrder)
	for _, conjunct := range conjuncts {
		if !isAlike(conjunct, device) {
			o.value(conjunct)
		}
	}
	o.scope.Forget(device)
}
