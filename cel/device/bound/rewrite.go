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

// valuesOf is a list made with map, in any order and with any repetitions, from one of which the
// same is true.
func (n *normalizer) valuesOf(list ast.Expr, s scope) (ast.Expr, bool) {
	list, ok := n.elementsOf(list, s)
	if !ok || list.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := list.AsComprehension()
	if _, _, is := tree.CollectionOf(c); !is || c.HasIterVar2() {
		return nil, false
	}
	from, ok := n.elementsOf(c.IterRange(), s)
	return ast.NewExprFactory().NewComprehension(n.write.Node(n.write.TypeOf(list), nil), from, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), ok
}
