// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
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
	o := orderReader{}
	o.visit(e.AST().Expr(), meanings{devicesVariable: deviceOrder})
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

// meanings of the variables in scope; others have none.
type meanings map[string]meaning

func (m meanings) with(name string, is meaning) meanings {
	result := make(meanings, len(m)+1)
	for known, meaning := range m {
		result[known] = meaning
	}
	if name != "" {
		result[name] = is
	}
	return result
}

// orderReader looks for the first part that depends on the order.
type orderReader struct {
	found ast.Expr
}

func (o *orderReader) report(expr ast.Expr) {
	if o.found == nil {
		o.found = expr
	}
}

// visit returns what the part is.
func (o *orderReader) visit(expr ast.Expr, scope meanings) meaning {
	switch expr.Kind() {
	case ast.IdentKind:
		return scope[expr.AsIdent()]
	case ast.SelectKind:
		o.visit(expr.AsSelect().Operand(), scope)
	case ast.CallKind:
		return o.call(expr, scope)
	case ast.ListKind:
		for _, element := range expr.AsList().Elements() {
			o.value(element, scope)
		}
	case ast.MapKind:
		for _, entry := range expr.AsMap().Entries() {
			o.value(entry.AsMapEntry().Key(), scope)
			o.value(entry.AsMapEntry().Value(), scope)
		}
	case ast.ComprehensionKind:
		return o.comprehension(expr.AsComprehension(), scope)
	}
	return noOrder
}

// value visits a part where an index is looked at as a number.
func (o *orderReader) value(expr ast.Expr, scope meanings) meaning {
	is := o.visit(expr, scope)
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

func (o *orderReader) call(expr ast.Expr, scope meanings) meaning {
	call := expr.AsCall()
	function, operands := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		operands = append([]ast.Expr{call.Target()}, operands...)
	}
	if isEquality(function) {
		o.equality(expr, scope)
		return noOrder
	}
	result := noOrder
	for i, operand := range operands {
		isOrdered := o.value(operand, scope) == deviceOrder
		if isOrdered && i == 0 && slices.Contains(asksOrder, function) {
			o.report(expr)
		}
		if isOrdered && slices.Contains(keepsOrder, function) {
			result = deviceOrder
		}
	}
	return result
}

func isEquality(function string) bool {
	return function == operators.Equals || function == operators.NotEquals
}

// equality of two indices tells that elements are the same. That of a list with another
// speaks of their order, unless the other is empty.
func (o *orderReader) equality(expr ast.Expr, scope meanings) {
	left, right := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	of, and := o.visit(left, scope), o.visit(right, scope)
	switch {
	case of == deviceIndex && and == deviceIndex:
	case of == deviceIndex, and == deviceIndex:
		o.report(expr)
	case of == deviceOrder && !isEmptyList(right), and == deviceOrder && !isEmptyList(left):
		o.report(expr)
	}
}

func isEmptyList(expr ast.Expr) bool {
	return expr.Kind() == ast.ListKind && expr.AsList().Size() == 0
}

// comprehension is what macros are expanded to: a loop with an accumulator. One whose
// accumulator is a list makes it in the order of what it loops over.
func (o *orderReader) comprehension(c ast.ComprehensionExpr, scope meanings) meaning {
	over := o.value(c.IterRange(), scope)
	if isIdent(c.IterRange(), devicesVariable) && over == deviceOrder && c.IterVar() != devicesVariable {
		if demanded := conjunctsOfAll(c); demanded != nil {
			o.all(demanded, c.IterVar(), scope)
			return noOrder
		}
	}
	begin := o.value(c.AccuInit(), scope)
	inner := scope.with(c.AccuVar(), begin)
	result := inner
	if c.HasIterVar2() {
		index := noOrder
		if over == deviceOrder {
			index = deviceIndex
		}
		inner = inner.with(c.IterVar(), index).with(c.IterVar2(), noOrder)
	} else {
		inner = inner.with(c.IterVar(), noOrder)
	}
	o.visit(c.LoopCondition(), inner)
	o.visit(c.LoopStep(), inner)
	is := o.visit(c.Result(), result)
	if over == deviceOrder && c.AccuInit().Kind() == ast.ListKind {
		return deviceOrder
	}
	return is
}

// all devices are to satisfy each of the conjuncts.
func (o *orderReader) all(conjuncts []ast.Expr, device string, scope meanings) {
	inner := scope.with(device, noOrder)
	for _, conjunct := range conjuncts {
		if !isAlike(conjunct, device) {
			o.value(conjunct, inner)
		}
	}
}
