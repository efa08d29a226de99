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

// isIn writes "k in list".
func (n *normalizer) isIn(k, list ast.Expr, s scope) (ast.Expr, bool) {
	list, ok := n.elementsOf(list, s)
	if !ok || !n.isComputedList(list) {
		return nil, false
	}
	found := n.write.Exists(list, func(x ast.Expr) ast.Expr { return n.write.Same(n.again(k), x) })
	if _, isDevice := deviceOf(k, s); isDevice || k.Kind() == ast.LiteralKind {
		return found, true
	}
	// Nobody looks at k if the list is empty. It may fail nevertheless.
	fails := n.write.Conditional(types.BoolType, n.write.Equals(n.again(k), n.again(k)), n.write.Literal(types.False), n.write.Literal(types.False))
	return n.write.Or(found, fails), true
}

// containsAll writes sets.contains(list, wanted).
func (n *normalizer) containsAll(list, wanted ast.Expr, s scope) (ast.Expr, bool) {
	if elements, ok := n.constants(wanted); ok {
		list, ok := n.elementsOf(list, s)
		if !ok {
			return nil, false
		}
		return n.write.Joined(elements, operators.LogicalAnd, overloads.LogicalAnd, func(k ast.Expr) ast.Expr {
			return n.write.Exists(n.again(list), func(x ast.Expr) ast.Expr { return n.write.Same(k, x) })
		}), true
	}
	wanted, ok := n.elementsOf(wanted, s)
	if !ok {
		return nil, false
	}
	if elements, ok := n.constants(list); ok {
		return n.write.All(wanted, func(x ast.Expr) ast.Expr { return n.isOneOf(x, elements) }), true
	}
	if list, ok = n.elementsOf(list, s); !ok {
		return nil, false
	}
	return n.write.And(n.write.All(wanted, func(x ast.Expr) ast.Expr { return n.isElement(x, list, s) }), n.isFound(list)), true
}

// intersects writes sets.intersects(left, right).
func (n *normalizer) intersects(left, right ast.Expr, s scope) (ast.Expr, bool) {
	if _, ok := n.constants(left); ok || isOfDevice(left, s) {
		left, right = right, left
	}
	left, ok := n.elementsOf(left, s)
	if !ok {
		return nil, false
	}
	if elements, ok := n.constants(right); ok {
		return n.write.Exists(left, func(x ast.Expr) ast.Expr { return n.isOneOf(x, elements) }), true
	}
	if right, ok = n.elementsOf(right, s); !ok {
		return nil, false
	}
	return n.write.Or(n.write.Exists(left, func(x ast.Expr) ast.Expr { return n.isElement(x, right, s) }),
		n.write.Not(n.isFound(right))), true
}

// isElement writes "k in list".
func (n *normalizer) isElement(k, list ast.Expr, s scope) ast.Expr {
	if isOfDevice(list, s) {
		return n.write.Call(operators.In, overloads.InList, types.BoolType, k, n.again(list))
	}
	return n.write.Exists(n.again(list), func(x ast.Expr) ast.Expr { return n.write.Same(k, x) })
}

// isFound is true, but fails if the list does.
func (n *normalizer) isFound(list ast.Expr) ast.Expr {
	return n.write.All(n.again(list), func(ast.Expr) ast.Expr { return n.write.Literal(types.True) })
}

// conditionOnEach writes a quantifier over elements that are given one by one. only may
// limit what must hold for an element to a condition.
func (n *normalizer) conditionOnEach(c ast.ComprehensionExpr, elements []ast.Expr, only func(holds ast.Expr, place int) ast.Expr) (result ast.Expr, ok bool) {
	is, holds := tree.QuantifierOf(c)
	place, ok := 0, true
	each := func(k ast.Expr) ast.Expr {
		part, fits := n.substitute(holds, tree.ElementVar(c), k, false)
		if fits && c.HasIterVar2() {
			part, fits = n.substitute(part, c.IterVar(), n.write.Literal(types.Int(place)), false)
		}
		place++
		ok = ok && fits
		return only(part, place-1)
	}
	switch is {
	case tree.All:
		result = n.write.Joined(elements, operators.LogicalAnd, overloads.LogicalAnd, each)
	case tree.Exists:
		result = n.write.Joined(elements, operators.LogicalOr, overloads.LogicalOr, each)
	default:
		count := n.write.Joined(elements, operators.Add, overloads.AddInt64, func(k ast.Expr) ast.Expr {
			return n.write.Conditional(types.IntType, each(k), n.write.Literal(types.Int(1)), n.write.Literal(types.Int(0)))
		})
		result = n.write.Equals(count, n.write.Literal(types.Int(1)))
	}
	return result, ok
}

// forgetOrder writes all and exists over elements in any order.
func forgetOrder(n *normalizer, expr ast.Expr, s scope) (ast.Expr, bool) {
	if expr.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := expr.AsComprehension()
	if is, _ := tree.QuantifierOf(c); is != tree.All && is != tree.Exists || c.HasIterVar2() {
		return nil, false
	}
	list, ok := n.unordered(c.IterRange(), s)
	if !ok {
		return nil, false
	}
	return ast.NewExprFactory().NewComprehension(n.write.Node(types.BoolType, nil), list, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), true
}

// unordered is a list without functions that change its order or the repetitions only, at the end or before map. It is false if
// there are none.
func (n *normalizer) unordered(list ast.Expr, s scope) (ast.Expr, bool) {
	if list.Kind() == ast.CallKind {
		elements, ok := n.elementsOf(list, s)
		return elements, ok && elements != list
	}
	if list.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := list.AsComprehension()
	if _, _, is := tree.CollectionOf(c); !is || c.HasIterVar2() {
		return nil, false
	}
	from, ok := n.unordered(c.IterRange(), s)
	if !ok {
		return nil, false
	}
	return ast.NewExprFactory().NewComprehension(n.write.Node(n.write.TypeOf(list), nil), from, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), true
}

// elementsOf recognizes a list that can be gone over: of the set, device by device, or
// of a single device. The order and repetitions are lost.
func (n *normalizer) elementsOf(list ast.Expr, s scope) (ast.Expr, bool) {
	list, ok := n.without(list, s, "distinct", "reverse")
	if !ok {
		return nil, false
	}
	if isOfDevice(list, s) {
		return list, n.isList(list)
	}
	return list, list.Kind() == ast.IdentKind || list.Kind() == ast.ComprehensionKind
}

// without leaves out functions that a list goes through at the end.
func (n *normalizer) without(list ast.Expr, s scope, functions ...string) (ast.Expr, bool) {
	list = n.reduce(list, s)
	for tree.IsCall(list, functions...) {
		if !list.AsCall().IsMemberFunction() || n.unguarded.Has(list.ID()) {
			return nil, false
		}
		list = n.reduce(list.AsCall().Target(), s)
	}
	return list, true
}

// isOfDevice reports whether an expression speaks of one device at most.
func isOfDevice(expr ast.Expr, s scope) bool {
	free, single := references(expr, s)
	return single && len(free) <= 1
}

// isList reports whether a value is a list if it can be gone over at all.
func (n *normalizer) isList(expr ast.Expr) bool {
	return n.write.TypeOf(expr).Kind() == types.ListKind || device.IsAttribute(n.write.AST(), expr)
}

// isOneOf writes "k == element || ...".
func (n *normalizer) isOneOf(k ast.Expr, elements []ast.Expr) ast.Expr {
	if len(elements) == 0 {
		return nil
	}
	return n.write.Joined(elements, operators.LogicalOr, overloads.LogicalOr, func(e ast.Expr) ast.Expr {
		return n.write.Same(e, n.again(k))
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

// What goes over constants is written out for each of them.

// maxRange is how many numbers of lists.range are constants.
const maxRange = 64

// constants recognizes a list of at least one constant. Among large numbers CEL finds
// some that are not there.
func (n *normalizer) constants(list ast.Expr) ([]ast.Expr, bool) {
	if count, ok := rangeOf(list); ok {
		return n.numbersTo(count), count > 0
	}
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

// rangeOf recognizes lists.range(count) with a constant.
func rangeOf(expr ast.Expr) (count int, ok bool) {
	if !tree.IsCall(expr, "lists.range") {
		return 0, false
	}
	n, ok := tree.Literal[types.Int](tree.Operands(expr.AsCall())[0])
	return int(n), ok && n >= 0 && n <= maxRange
}

func (n *normalizer) numbersTo(count int) []ast.Expr {
	result := make([]ast.Expr, count)
	for i := range result {
		result[i] = n.write.Literal(types.Int(i))
	}
	return result
}

// isLarge reports whether a number may be another one if it is converted.
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

// unrolled writes a quantifier over constants.
func (n *normalizer) unrolled(c ast.ComprehensionExpr) (ast.Expr, bool) {
	elements, ok := n.constants(c.IterRange())
	if is, _ := tree.QuantifierOf(c); !ok || is == tree.NoQuantifier {
		return nil, false
	}
	return n.conditionOnEach(c, elements, func(holds ast.Expr, _ int) ast.Expr { return holds })
}

// countOfConstants writes the size of constants.filter(x, keeps).
func (n *normalizer) countOfConstants(list ast.Expr) (ast.Expr, bool) {
	if list.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := list.AsComprehension()
	elements, ok := n.constants(c.IterRange())
	keeps, element, is := tree.CollectionOf(c)
	if !ok || !is || keeps == nil || c.HasIterVar2() || !tree.IsIdent(element, c.IterVar()) {
		return nil, false
	}
	result := n.write.Joined(elements, operators.Add, overloads.AddInt64, func(k ast.Expr) ast.Expr {
		when, fits := n.substitute(keeps, c.IterVar(), k, false)
		ok = ok && fits
		return n.write.Conditional(types.IntType, when, n.write.Literal(types.Int(1)), n.write.Literal(types.Int(0)))
	})
	return result, ok
}

func (n *normalizer) conjunction(parts []ast.Expr, each func(ast.Expr) ast.Expr) ast.Expr {
	return n.write.Joined(parts, operators.LogicalAnd, overloads.LogicalAnd, each)
}

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

// hasGuarded reports whether anything in a comprehension may abort.
func (n *normalizer) hasGuarded(c ast.ComprehensionExpr) bool {
	found := false
	for _, part := range []ast.Expr{c.IterRange(), c.LoopStep()} {
		tree.Visit(part, func(e ast.Expr, _ tree.Names) { found = found || n.mayAbort(e) })
	}
	return found
}
