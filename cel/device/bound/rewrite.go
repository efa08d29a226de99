// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Much can be written in several ways. What follows writes conditions on lists with
// quantifiers, which are understood. The two must fail alike.
//
//	k in list                      list.exists(x, x == k)
//	k in [1, 2]                    k == 1 || k == 2
//	sets.contains(list, ['a'])     'a' in list
//	list.distinct() == ['a']       list.all(x, x == 'a')
//	[1, 2].all(n, p(n))            p(1) && p(2)

// rewrite writes a condition another way. It is false if there is none.
func (a *analyzer) rewrite(expr ast.Expr, s scope) (ast.Expr, bool) {
	before := a.mayAbort(expr)
	result, ok := a.rewritten(expr, s)
	if !ok {
		return nil, false
	}
	a.replace(expr, result, s)
	if before {
		// What CEL evaluates is the expression, after all.
		a.unguarded.Insert(expr.ID())
	}
	return result, true
}

func (a *analyzer) rewritten(expr ast.Expr, s scope) (ast.Expr, bool) {
	if expr.Kind() == ast.ComprehensionKind {
		if result, ok := a.unrolled(expr.AsComprehension()); ok {
			return result, true
		}
		return a.unordered(expr, s)
	}
	if expr.Kind() != ast.CallKind || len(expr.AsCall().Args()) != 2 {
		return nil, false
	}
	left, right := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	switch expr.AsCall().FunctionName() {
	case operators.In:
		return a.isIn(left, right, s)
	case "sets.contains":
		return a.containsAll(left, right, s)
	case "sets.intersects":
		return a.intersects(left, right, s)
	case "sets.equivalent":
		there, ok := a.containsAll(left, right, s)
		back, too := a.containsAll(right, left, s)
		return a.newCall(operators.LogicalAnd, overloads.LogicalAnd, types.BoolType, there, back), ok && too
	case operators.Equals:
		return a.isOnly(left, right, s)
	case operators.NotEquals:
		result, ok := a.isOnly(left, right, s)
		return a.newCall(operators.LogicalNot, overloads.LogicalNot, types.BoolType, result), ok
	default:
		return nil, false
	}
}

// isIn writes "k in list".
func (a *analyzer) isIn(k, list ast.Expr, s scope) (ast.Expr, bool) {
	if elements, ok := constants(list); ok {
		return a.isOneOf(k, elements), true
	}
	list, ok := a.elementsOf(list, s)
	if _, isDevice := deviceOf(k, s); !ok || k.Kind() != ast.LiteralKind && !isDevice && !a.isFull(list, s) {
		// If the list is empty, nobody asks whether k fails.
		return nil, false
	}
	return a.newExists(list, func(x ast.Expr) ast.Expr { return a.newEquals(x, a.again(k)) }), true
}

// containsAll writes sets.contains(list, wanted).
func (a *analyzer) containsAll(list, wanted ast.Expr, s scope) (ast.Expr, bool) {
	if elements, ok := constants(wanted); ok {
		list, ok := a.elementsOf(list, s)
		if !ok {
			return nil, false
		}
		return a.joined(elements, operators.LogicalAnd, overloads.LogicalAnd, func(k ast.Expr) ast.Expr {
			return a.newExists(a.again(list), func(x ast.Expr) ast.Expr { return a.newEquals(x, k) })
		}), true
	}
	wanted, ok := a.elementsOf(wanted, s)
	if !ok {
		return nil, false
	}
	if elements, ok := constants(list); ok {
		return a.newAll(wanted, func(x ast.Expr) ast.Expr { return a.isOneOf(x, elements) }), true
	}
	list, ok = a.elementsOf(list, s)
	if !ok || !a.isFull(wanted, s) {
		return nil, false
	}
	return a.newAll(wanted, func(x ast.Expr) ast.Expr {
		return a.newExists(list, func(y ast.Expr) ast.Expr { return a.newEquals(y, x) })
	}), true
}

// intersects writes sets.intersects(left, right).
func (a *analyzer) intersects(left, right ast.Expr, s scope) (ast.Expr, bool) {
	if _, ok := constants(left); ok {
		left, right = right, left
	}
	left, ok := a.elementsOf(left, s)
	if !ok {
		return nil, false
	}
	if elements, ok := constants(right); ok {
		return a.newExists(left, func(x ast.Expr) ast.Expr { return a.isOneOf(x, elements) }), true
	}
	right, ok = a.elementsOf(right, s)
	if !ok || !a.isFull(left, s) {
		return nil, false
	}
	return a.newExists(left, func(x ast.Expr) ast.Expr {
		return a.newExists(right, func(y ast.Expr) ast.Expr { return a.newEquals(y, x) })
	}), true
}

// isOnly writes "list.distinct() == [k]", in either order.
func (a *analyzer) isOnly(list, only ast.Expr, s scope) (ast.Expr, bool) {
	if only.Kind() != ast.ListKind {
		list, only = only, list
	}
	elements, ok := constants(only)
	if !ok || len(elements) != 1 || !isCall(list, "distinct") || !a.isFull(list, s) {
		return nil, false
	}
	list, ok = a.elementsOf(list, s)
	return a.newAll(list, func(x ast.Expr) ast.Expr { return a.newEquals(x, elements[0]) }), ok
}

// unrolled writes a quantifier over constants.
func (a *analyzer) unrolled(c ast.ComprehensionExpr) (ast.Expr, bool) {
	elements, ok := constants(c.IterRange())
	holds, _ := quantified(c)
	if !ok || holds == nil {
		return nil, false
	}
	place := 0
	each := func(k ast.Expr) ast.Expr {
		part, fits := a.substitute(holds, elementOf(c), k, false)
		if fits && c.HasIterVar2() {
			part, fits = a.substitute(part, c.IterVar(), a.newLiteral(types.Int(place)), false)
		}
		place++
		ok = ok && fits
		return part
	}
	var result ast.Expr
	switch c.AccuInit().AsLiteral() {
	case ref.Val(types.True):
		result = a.joined(elements, operators.LogicalAnd, overloads.LogicalAnd, each)
	case ref.Val(types.False):
		result = a.joined(elements, operators.LogicalOr, overloads.LogicalOr, each)
	default:
		count := a.joined(elements, operators.Add, overloads.AddInt64, func(k ast.Expr) ast.Expr {
			one, none := a.newLiteral(types.Int(1)), a.newLiteral(types.Int(0))
			return a.newCall(operators.Conditional, overloads.Conditional, types.IntType, each(k), one, none)
		})
		result = a.newEquals(count, a.newLiteral(types.Int(1)))
	}
	return result, ok
}

// unordered writes all and exists over elements in any order.
func (a *analyzer) unordered(expr ast.Expr, s scope) (ast.Expr, bool) {
	c := expr.AsComprehension()
	_, isLogical := c.AccuInit().AsLiteral().(types.Bool)
	if holds, _ := quantified(c); holds == nil || !isLogical || c.HasIterVar2() || c.IterRange().Kind() != ast.CallKind {
		return nil, false
	}
	list, ok := a.elementsOf(c.IterRange(), s)
	return ast.NewExprFactory().NewComprehension(a.newNode(types.BoolType, nil), list, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), ok
}

// constants recognizes a list of at least one constant.
func constants(list ast.Expr) ([]ast.Expr, bool) {
	if list.Kind() != ast.ListKind || list.AsList().Size() == 0 || len(list.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	for _, element := range list.AsList().Elements() {
		if element.Kind() != ast.LiteralKind {
			return nil, false
		}
	}
	return list.AsList().Elements(), true
}

// elementsOf recognizes a list that can be gone over device by device. The order and
// repetitions are lost.
func (a *analyzer) elementsOf(list ast.Expr, s scope) (ast.Expr, bool) {
	list = a.reduce(list, s)
	for isCall(list, "distinct") || isCall(list, "sort") || isCall(list, "reverse") {
		if !list.AsCall().IsMemberFunction() || a.unguarded.Has(list.ID()) {
			return nil, false
		}
		list = a.reduce(list.AsCall().Target(), s)
	}
	if _, single := references(list, s); single {
		return nil, false
	}
	return list, list.Kind() == ast.IdentKind || list.Kind() == ast.ComprehensionKind
}

// isFull tells whether a list has an element for each device of the set.
func (a *analyzer) isFull(list ast.Expr, s scope) bool {
	list, ok := a.elementsOf(list, s)
	for ok && list.Kind() == ast.ComprehensionKind {
		keeps, _, isMap := appends(list.AsComprehension())
		if !isMap || keeps != nil {
			return false
		}
		list, ok = a.elementsOf(list.AsComprehension().IterRange(), s)
	}
	_, hidden := s[devicesVariable]
	return ok && list.Kind() == ast.IdentKind && list.AsIdent() == devicesVariable && !hidden
}

// isOneOf writes "k == element || ...".
func (a *analyzer) isOneOf(k ast.Expr, elements []ast.Expr) ast.Expr {
	return a.joined(elements, operators.LogicalOr, overloads.LogicalOr, func(e ast.Expr) ast.Expr {
		return a.newEquals(a.again(k), e)
	})
}

// joined writes what is made of each part with an operator between them.
func (a *analyzer) joined(parts []ast.Expr, operator, overload string, each func(ast.Expr) ast.Expr) ast.Expr {
	result := each(parts[0])
	for _, part := range parts[1:] {
		right := each(part)
		result = a.newCall(operator, overload, a.tree.GetType(right.ID()), result, right)
	}
	return result
}

// again copies a part that is to stand in several places.
func (a *analyzer) again(expr ast.Expr) ast.Expr {
	result, ok := a.substituteParts(expr, nil)
	if !ok {
		return expr
	}
	return result
}

func (a *analyzer) newLiteral(value ref.Val) ast.Expr {
	return ast.NewExprFactory().NewLiteral(a.newNode(value.Type().(*types.Type), nil), value)
}

func (a *analyzer) newCall(function, overload string, result *types.Type, args ...ast.Expr) ast.Expr {
	return ast.NewExprFactory().NewCall(a.newNode(result, ast.NewFunctionReference(overload)), function, args...)
}

func (a *analyzer) newEquals(left, right ast.Expr) ast.Expr {
	return a.newCall(operators.Equals, overloads.Equals, types.BoolType, left, right)
}

// newExists writes list.exists(x, body), newAll list.all(x, body).
func (a *analyzer) newExists(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	return a.newQuantifier(list, types.False, operators.LogicalOr, overloads.LogicalOr, body)
}

func (a *analyzer) newAll(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	return a.newQuantifier(list, types.True, operators.LogicalAnd, overloads.LogicalAnd, body)
}

func (a *analyzer) newQuantifier(list ast.Expr, init types.Bool, operator, overload string, body func(x ast.Expr) ast.Expr) ast.Expr {
	f, name := ast.NewExprFactory(), a.newName()
	element := types.DynType
	if t := a.tree.GetType(list.ID()); t.Kind() == types.ListKind {
		element = t.Parameters()[0]
	}
	accumulator := func() ast.Expr { return a.newIdent(f.AccuIdentName(), types.BoolType) }
	step := a.newCall(operator, overload, types.BoolType, accumulator(), body(a.newIdent(name, element)))
	return f.NewComprehension(a.newNode(types.BoolType, nil), list, name, f.AccuIdentName(), a.newLiteral(init), a.newLiteral(types.True), step, accumulator())
}
