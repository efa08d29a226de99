// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/tree"
)

// isIn rewrites "k in list" to list.exists(x, k == x).
func (n *Normalizer) isIn(k, list ast.Expr, s Scope) (ast.Expr, bool) {
	list, ok := n.elementsOf(list, s)
	if !ok || !n.isComputedList(list) {
		return nil, false
	}
	found := n.Write.Exists(list, func(x ast.Expr) ast.Expr { return n.Write.Same(n.Again(k), x) })
	if _, isDevice := DeviceOf(k, s); isDevice || k.Kind() == ast.LiteralKind {
		return found, true
	}
	// For an empty list, exists would not evaluate k. But the result must fail if k fails, so add "|| fails", which evaluates
	// k.
	fails := n.Write.Conditional(types.BoolType, n.Write.Equals(n.Again(k), n.Again(k)), n.Write.Literal(types.False), n.Write.Literal(types.False))
	return n.Write.Or(found, fails), true
}

// containsAll rewrites sets.contains(list, wanted) with quantifiers: each wanted value is in the list.
func (n *Normalizer) containsAll(list, wanted ast.Expr, s Scope) (ast.Expr, bool) {
	if elements, ok := n.constants(wanted); ok {
		list, ok := n.elementsOf(list, s)
		if !ok {
			return nil, false
		}
		return n.Write.Joined(elements, operators.LogicalAnd, overloads.LogicalAnd, func(k ast.Expr) ast.Expr {
			return n.Write.Exists(n.Again(list), func(x ast.Expr) ast.Expr { return n.Write.Same(k, x) })
		}), true
	}
	wanted, ok := n.elementsOf(wanted, s)
	if !ok {
		return nil, false
	}
	if elements, ok := n.constants(list); ok {
		return n.Write.All(wanted, func(x ast.Expr) ast.Expr { return n.isOneOf(x, elements) }), true
	}
	if list, ok = n.elementsOf(list, s); !ok {
		return nil, false
	}
	return n.Write.And(n.Write.All(wanted, func(x ast.Expr) ast.Expr { return n.isElement(x, list, s) }), n.IsFound(list)), true
}

// intersects rewrites sets.intersects(left, right) with quantifiers: some value is in both lists.
func (n *Normalizer) intersects(left, right ast.Expr, s Scope) (ast.Expr, bool) {
	if _, ok := n.constants(left); ok || IsOfDevice(left, s) {
		left, right = right, left
	}
	left, ok := n.elementsOf(left, s)
	if !ok {
		return nil, false
	}
	if elements, ok := n.constants(right); ok {
		return n.Write.Exists(left, func(x ast.Expr) ast.Expr { return n.isOneOf(x, elements) }), true
	}
	if right, ok = n.elementsOf(right, s); !ok {
		return nil, false
	}
	return n.Write.Or(n.Write.Exists(left, func(x ast.Expr) ast.Expr { return n.isElement(x, right, s) }),
		n.Write.Not(n.IsFound(right))), true
}

// isElement returns "k in list" if the list belongs to one device, and list.exists(x, k == x) otherwise.
func (n *Normalizer) isElement(k, list ast.Expr, s Scope) ast.Expr {
	if IsOfDevice(list, s) {
		return n.Write.Call(operators.In, overloads.InList, types.BoolType, k, n.Again(list))
	}
	return n.Write.Exists(n.Again(list), func(x ast.Expr) ast.Expr { return n.Write.Same(k, x) })
}

// IsFound returns the condition list.all(x, true). It is true, unless evaluating the list fails.
func (n *Normalizer) IsFound(list ast.Expr) ast.Expr {
	return n.Write.All(n.Again(list), func(ast.Expr) ast.Expr { return n.Write.Literal(types.True) })
}

// forgetOrder removes functions that only change the order or the repetitions of a list from the range of all or exists.
func forgetOrder(n *Normalizer, expr ast.Expr, s Scope) (ast.Expr, bool) {
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
	return ast.NewExprFactory().NewComprehension(n.Write.Node(types.BoolType, nil), list, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), true
}

// unordered removes functions that only change the order or the repetitions of a list, at the end of a list expression or
// before map or filter. It returns false if there are no such functions.
func (n *Normalizer) unordered(list ast.Expr, s Scope) (ast.Expr, bool) {
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
	return ast.NewExprFactory().NewComprehension(n.Write.Node(n.Write.TypeOf(list), nil), from, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), true
}

// elementsOf removes distinct and reverse from the end of a list expression. It returns false unless the result is a
// comprehension, a name, or a list that belongs to one device.
func (n *Normalizer) elementsOf(list ast.Expr, s Scope) (ast.Expr, bool) {
	list, ok := n.Without(list, s, "distinct", "reverse")
	if !ok {
		return nil, false
	}
	if IsOfDevice(list, s) {
		return list, n.IsList(list)
	}
	return list, list.Kind() == ast.IdentKind || list.Kind() == ast.ComprehensionKind
}

// Without removes calls of the given functions from the end of a list expression. It returns false if such a call may abort.
func (n *Normalizer) Without(list ast.Expr, s Scope, functions ...string) (ast.Expr, bool) {
	list = n.Reduce(list, s)
	for tree.IsCall(list, functions...) {
		if !list.AsCall().IsMemberFunction() || n.Unguarded.Has(list.ID()) {
			return nil, false
		}
		list = n.Reduce(list.AsCall().Target(), s)
	}
	return list, true
}

// isOneOf returns "k == elements[0] || k == elements[1] || ...", or nil without elements.
func (n *Normalizer) isOneOf(k ast.Expr, elements []ast.Expr) ast.Expr {
	if len(elements) == 0 {
		return nil
	}
	return n.Write.Joined(elements, operators.LogicalOr, overloads.LogicalOr, func(e ast.Expr) ast.Expr {
		return n.Write.Same(e, n.Again(k))
	})
}

// Sameness recognizes "left in [right]" if right is not a constant.
func Sameness(expr ast.Expr) (left, right ast.Expr, ok bool) {
	if !tree.IsCall(expr, operators.In) {
		return nil, nil, false
	}
	right, ok = tree.OnlyElement(expr.AsCall().Args()[1])
	return expr.AsCall().Args()[0], right, ok && right.Kind() != ast.LiteralKind
}

// WriteSizeIs returns a comparison of the size of a list with a number.
func (n *Normalizer) WriteSizeIs(operator, overload string, list ast.Expr, number int) ast.Expr {
	return n.Write.Call(operator, overload, types.BoolType, n.Write.Size(n.Again(list)), n.Write.Literal(types.Int(number)))
}

// HasGuarded reports whether an operation in a comprehension may abort the evaluation, even if it has a guard.
func (n *Normalizer) HasGuarded(c ast.ComprehensionExpr) bool {
	found := false
	for _, part := range []ast.Expr{c.IterRange(), c.LoopStep()} {
		tree.Visit(part, func(e ast.Expr, _ tree.Names) { found = found || n.mayAbort(e) })
	}
	return found
}

// ValuesOf recognizes a list made with map. The result has the same values, perhaps in another order and with other
// repetitions.
func (n *Normalizer) ValuesOf(list ast.Expr, s Scope) (ast.Expr, bool) {
	list, ok := n.elementsOf(list, s)
	if !ok || list.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := list.AsComprehension()
	if _, _, is := tree.CollectionOf(c); !is || c.HasIterVar2() {
		return nil, false
	}
	from, ok := n.elementsOf(c.IterRange(), s)
	return ast.NewExprFactory().NewComprehension(n.Write.Node(n.Write.TypeOf(list), nil), from, c.IterVar(), c.AccuVar(),
		c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()), ok
}
