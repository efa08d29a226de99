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

// Unrolled replaces a quantifier over a list of constants by an expression without a loop.
func (n *Normalizer) Unrolled(c ast.ComprehensionExpr) (ast.Expr, bool) {
	elements, ok := n.constants(c.IterRange())
	if is, _ := tree.QuantifierOf(c); !ok || is == tree.NoQuantifier {
		return nil, false
	}
	return n.ConditionOnEach(c, elements, func(holds ast.Expr, _ int) ast.Expr { return holds })
}

// ConditionOnEach replaces a quantifier over the given elements by an expression that states its condition on each element. If
// only is not nil, it may weaken the condition on the element at index place.
func (n *Normalizer) ConditionOnEach(c ast.ComprehensionExpr, elements []ast.Expr, only func(holds ast.Expr, place int) ast.Expr) (result ast.Expr, ok bool) {
	is, holds := tree.QuantifierOf(c)
	place, ok := 0, true
	each := func(k ast.Expr) ast.Expr {
		part, fits := n.Substitute(holds, tree.ElementVar(c), k, false)
		if fits && c.HasIterVar2() {
			part, fits = n.Substitute(part, c.IterVar(), n.Write.Literal(types.Int(place)), false)
		}
		place++
		ok = ok && fits
		return only(part, place-1)
	}
	switch is {
	case tree.All:
		result = n.Write.Joined(elements, operators.LogicalAnd, overloads.LogicalAnd, each)
	case tree.Exists:
		result = n.Write.Joined(elements, operators.LogicalOr, overloads.LogicalOr, each)
	default:
		count := n.Write.Joined(elements, operators.Add, overloads.AddInt64, func(k ast.Expr) ast.Expr {
			return n.Write.Conditional(types.IntType, each(k), n.Write.Literal(types.Int(1)), n.Write.Literal(types.Int(0)))
		})
		result = n.Write.Equals(count, n.Write.Literal(types.Int(1)))
	}
	return result, ok
}

// CountOfConstants replaces the size of constants.filter(x, keeps) by a sum of 0 or 1 for each constant.
func (n *Normalizer) CountOfConstants(list ast.Expr) (ast.Expr, bool) {
	if list.Kind() != ast.ComprehensionKind {
		return nil, false
	}
	c := list.AsComprehension()
	elements, ok := n.constants(c.IterRange())
	keeps, element, is := tree.CollectionOf(c)
	if !ok || !is || keeps == nil || c.HasIterVar2() || !tree.IsIdent(element, c.IterVar()) {
		return nil, false
	}
	result := n.Write.Joined(elements, operators.Add, overloads.AddInt64, func(k ast.Expr) ast.Expr {
		when, fits := n.Substitute(keeps, c.IterVar(), k, false)
		ok = ok && fits
		return n.Write.Conditional(types.IntType, when, n.Write.Literal(types.Int(1)), n.Write.Literal(types.Int(0)))
	})
	return result, ok
}

func (n *Normalizer) conjunction(parts []ast.Expr, each func(ast.Expr) ast.Expr) ast.Expr {
	return n.Write.Joined(parts, operators.LogicalAnd, overloads.LogicalAnd, each)
}
