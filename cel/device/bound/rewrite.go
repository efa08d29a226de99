// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// Much can be written in several ways. What follows writes conditions on lists with
// quantifiers, which are understood. The two must fail alike.
//
//	k in list                      list.exists(x, k in [x])
//	k in [1, 2]                    1 in [k] || 2 in [k]
//	sets.contains(list, ['a'])     'a' in list
//	[1, 2].all(n, p(n))            p(1) && p(2)

// rewrite writes a condition another way. It is false if there is none.
func (a *analyzer) rewrite(expr ast.Expr, s scope) (ast.Expr, bool) {
	if a.copies++; a.copies > maxCopies {
		return nil, false
	}
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
	_, single := references(expr, s)
	if expr.Kind() == ast.ComprehensionKind {
		if result, ok := a.unrolled(expr.AsComprehension()); ok || single {
			return result, ok
		}
		return a.unordered(expr, s)
	}
	if expr.Kind() != ast.CallKind || len(expr.AsCall().Args()) != 2 {
		return nil, false
	}
	left, right := expr.AsCall().Args()[0], expr.AsCall().Args()[1]
	if tree.IsCall(expr, operators.In) {
		if elements, ok := constants(right); ok || single {
			return a.isOneOf(left, elements), ok
		}
		return a.isIn(left, right, s)
	}
	if single {
		return nil, false
	}
	switch expr.AsCall().FunctionName() {
	case "sets.contains":
		return a.containsAll(left, right, s)
	case "sets.intersects":
		return a.intersects(left, right, s)
	case "sets.equivalent":
		there, ok := a.containsAll(left, right, s)
		back, too := a.containsAll(right, left, s)
		return a.write.And(there, back), ok && too
	default:
		return nil, false
	}
}

// isIn writes "k in list".
func (a *analyzer) isIn(k, list ast.Expr, s scope) (ast.Expr, bool) {
	list, ok := a.elementsOf(list, s)
	if !ok || !a.isComputedList(list) {
		return nil, false
	}
	found := a.write.Exists(list, func(x ast.Expr) ast.Expr { return a.write.Same(a.again(k), x) })
	if _, isDevice := deviceOf(k, s); isDevice || k.Kind() == ast.LiteralKind {
		return found, true
	}
	// Nobody looks at k if the list is empty. It may fail nevertheless.
	fails := a.write.Conditional(types.BoolType, a.write.Equals(a.again(k), a.again(k)), a.write.Literal(types.False), a.write.Literal(types.False))
	return a.write.Or(found, fails), true
}

// containsAll writes sets.contains(list, wanted).
func (a *analyzer) containsAll(list, wanted ast.Expr, s scope) (ast.Expr, bool) {
	if elements, ok := constants(wanted); ok {
		list, ok := a.elementsOf(list, s)
		if !ok {
			return nil, false
		}
		return a.write.Joined(elements, operators.LogicalAnd, overloads.LogicalAnd, func(k ast.Expr) ast.Expr {
			return a.write.Exists(a.again(list), func(x ast.Expr) ast.Expr { return a.write.Same(k, x) })
		}), true
	}
	wanted, ok := a.elementsOf(wanted, s)
	if !ok {
		return nil, false
	}
	if elements, ok := constants(list); ok {
		return a.write.All(wanted, func(x ast.Expr) ast.Expr { return a.isOneOf(x, elements) }), true
	}
	if list, ok = a.elementsOf(list, s); !ok {
		return nil, false
	}
	return a.write.And(a.write.All(wanted, func(x ast.Expr) ast.Expr { return a.isElement(x, list, s) }), a.isFound(list)), true
}

// intersects writes sets.intersects(left, right).
func (a *analyzer) intersects(left, right ast.Expr, s scope) (ast.Expr, bool) {
	if _, ok := constants(left); ok || isOfDevice(left, s) {
		left, right = right, left
	}
	left, ok := a.elementsOf(left, s)
	if !ok {
		return nil, false
	}
	if elements, ok := constants(right); ok {
		return a.write.Exists(left, func(x ast.Expr) ast.Expr { return a.isOneOf(x, elements) }), true
	}
	if right, ok = a.elementsOf(right, s); !ok {
		return nil, false
	}
	return a.write.Or(a.write.Exists(left, func(x ast.Expr) ast.Expr { return a.isElement(x, right, s) }),
		a.write.Not(a.isFound(right))), true
}

// isElement writes "k in list".
func (a *analyzer) isElement(k, list ast.Expr, s scope) ast.Expr {
	if isOfDevice(list, s) {
		return a.write.Call(operators.In, overloads.InList, types.BoolType, k, a.again(list))
	}
	return a.write.Exists(a.again(list), func(x ast.Expr) ast.Expr { return a.write.Same(k, x) })
}

// isFound is true, but fails if the list does.
func (a *analyzer) isFound(list ast.Expr) ast.Expr {
	return a.write.All(a.again(list), func(ast.Expr) ast.Expr { return a.write.Literal(types.True) })
}

// isOnly reads "list.distinct() == [k]", in either order. Lists whose elements can't be
// compared are equal, so that a failure may be anything.
func (a *analyzer) isOnly(list, only ast.Expr, s scope) (condition, bool) {
	if only.Kind() != ast.ListKind {
		list, only = only, list
	}
	elements, ok := constants(only)
	if !ok || len(elements) != 1 || !tree.IsCall(list, "distinct") {
		return nil, false
	}
	if list, ok = a.elementsOf(list, s); !ok {
		return nil, false
	}
	all := a.write.All(list, func(x ast.Expr) ast.Expr { return a.write.Equals(x, elements[0]) })
	any := a.write.Exists(a.again(list), func(ast.Expr) ast.Expr { return a.write.Literal(types.True) })
	both := a.write.And(all, any)
	a.require(both, s)
	return unsure{a.condition(both, s)}, true
}

// unrolled writes a quantifier over constants.
func (a *analyzer) unrolled(c ast.ComprehensionExpr) (ast.Expr, bool) {
	elements, ok := constants(c.IterRange())
	if is, _ := tree.QuantifierOf(c); !ok || is == tree.NoQuantifier {
		return nil, false
	}
	return a.conditionOnEach(c, elements, func(holds ast.Expr, _ int) ast.Expr { return holds })
}

// conditionOnEach writes a quantifier over elements that are given one by one. only may
// limit what must hold for an element to a condition.
func (a *analyzer) conditionOnEach(c ast.ComprehensionExpr, elements []ast.Expr, only func(holds ast.Expr, place int) ast.Expr) (result ast.Expr, ok bool) {
	is, holds := tree.QuantifierOf(c)
	place, ok := 0, true
	each := func(k ast.Expr) ast.Expr {
		part, fits := a.substitute(holds, tree.ElementVar(c), k, false)
		if fits && c.HasIterVar2() {
			part, fits = a.substitute(part, c.IterVar(), a.write.Literal(types.Int(place)), false)
		}
		place++
		ok = ok && fits
		return only(part, place-1)
	}
	switch is {
	case tree.All:
		result = a.write.Joined(elements, operators.LogicalAnd, overloads.LogicalAnd, each)
	case tree.Exists:
		result = a.write.Joined(elements, operators.LogicalOr, overloads.LogicalOr, each)
	default:
		count := a.write.Joined(elements, operators.Add, overloads.AddInt64, func(k ast.Expr) ast.Expr {
			return a.write.Conditional(types.IntType, each(k), a.write.Literal(types.Int(1)), a.write.Literal(types.Int(0)))
		})
		result = a.write.Equals(count, a.write.Literal(types.Int(1)))
	}
	return result, ok
}

// unordered writes all and exists over elements in any order.
func (a *analyzer) unordered(expr ast.Expr, s scope) (ast.Expr, bool) {
	c := expr.AsComprehension()
	if is, _ := tree.QuantifierOf(c); is != tree.All && is != tree.Exists || c.HasIterVar2() || c.IterRange().Kind() != ast.CallKind {
		return nil, false
	}
	list, ok := a.elementsOf(c.IterRange(), s)
	if !ok || list == c.IterRange() {
		return nil, false
	}
	return ast.NewExprFactory().NewComprehension(a.write.Node(types.BoolType, nil), list, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), true
}

// constants recognizes a list of at least one constant. Among large numbers CEL finds
// some that are not there.
func constants(list ast.Expr) ([]ast.Expr, bool) {
	if list.Kind() != ast.ListKind || list.AsList().Size() == 0 || len(list.AsList().OptionalIndices()) > 0 {
		return nil, false
	}
	for _, element := range list.AsList().Elements() {
		if element.Kind() != ast.LiteralKind || isLarge(element.AsLiteral()) {
			return nil, false
		}
	}
	return list.AsList().Elements(), true
}

// isLarge tells whether a number may be another one if it is converted.
func isLarge(value ref.Val) bool {
	const exact = 1 << 53
	switch value := value.(type) {
	case types.Int:
		return value > exact || value < -exact
	case types.Uint:
		return value > exact
	case types.Double:
		return value > exact || value < -exact
	default:
		return false
	}
}

// elementsOf recognizes a list that can be gone over: of the set, device by device, or
// of a single device. The order and repetitions are lost.
func (a *analyzer) elementsOf(list ast.Expr, s scope) (ast.Expr, bool) {
	list, ok := a.without(list, s, "distinct", "reverse")
	if !ok {
		return nil, false
	}
	if isOfDevice(list, s) {
		return list, a.isList(list)
	}
	return list, list.Kind() == ast.IdentKind || list.Kind() == ast.ComprehensionKind
}

// without leaves out functions that a list goes through at the end.
func (a *analyzer) without(list ast.Expr, s scope, functions ...string) (ast.Expr, bool) {
	list = a.reduce(list, s)
	for tree.IsCall(list, functions...) {
		if !list.AsCall().IsMemberFunction() || a.unguarded.Has(list.ID()) {
			return nil, false
		}
		list = a.reduce(list.AsCall().Target(), s)
	}
	return list, true
}

// isOfDevice tells whether an expression speaks of one device at most.
func isOfDevice(expr ast.Expr, s scope) bool {
	free, single := references(expr, s)
	return single && len(free) <= 1
}

// isList tells whether a value is a list if it can be gone over at all.
func (a *analyzer) isList(expr ast.Expr) bool {
	return a.write.TypeOf(expr).Kind() == types.ListKind || device.IsAttribute(a.write.AST(), expr)
}

// isOneOf writes "k == element || ...".
func (a *analyzer) isOneOf(k ast.Expr, elements []ast.Expr) ast.Expr {
	if len(elements) == 0 {
		return nil
	}
	return a.write.Joined(elements, operators.LogicalOr, overloads.LogicalOr, func(e ast.Expr) ast.Expr {
		return a.write.Same(e, a.again(k))
	})
}

// sameness recognizes "left in [right]", right not being a constant.
func sameness(expr ast.Expr) (left, right ast.Expr, ok bool) {
	if !tree.IsCall(expr, operators.In) {
		return nil, nil, false
	}
	right, ok = tree.OnlyElement(expr.AsCall().Args()[1])
	return expr.AsCall().Args()[0], right, ok && right.Kind() != ast.LiteralKind
}
