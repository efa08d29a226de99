// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/tree"
)

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
