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

// What goes over constants is written out for each of them.

// unrolled writes a quantifier over constants.
func (n *normalizer) unrolled(c ast.ComprehensionExpr) (ast.Expr, bool) {
	elements, ok := n.constants(c.IterRange())
	if is, _ := tree.QuantifierOf(c); !ok || is == tree.NoQuantifier {
		return nil, false
	}
	return n.conditionOnEach(c, elements, func(holds ast.Expr, _ int) ast.Expr { return holds })
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
