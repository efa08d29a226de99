// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
)

// maxRange is the largest argument of lists.range. With a larger argument, the call is not treated as a list of constants.
const maxRange = 64

// constants recognizes a list of at least one constant. Large numbers are excluded, because CEL's "in" rounds them and so finds
// numbers that are not in the list.
func (n *Normalizer) constants(list ast.Expr) ([]ast.Expr, bool) {
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

// rangeOf recognizes lists.range(count) with a constant count.
func rangeOf(expr ast.Expr) (count int, ok bool) {
	if !tree.IsCall(expr, "lists.range") {
		return 0, false
	}
	n, ok := tree.Literal[types.Int](tree.Operands(expr.AsCall())[0])
	return int(n), ok && n >= 0 && n <= maxRange
}

func (n *Normalizer) numbersTo(count int) []ast.Expr {
	result := make([]ast.Expr, count)
	for i := range result {
		result[i] = n.Write.Literal(types.Int(i))
	}
	return result
}

// isLarge reports whether a number is so large that its conversion to another numeric type may change it.
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

// IsList reports whether an expression is a list. Attributes count as lists, because iterating an attribute fails unless it is
// a list.
func (n *Normalizer) IsList(expr ast.Expr) bool {
	return n.Write.TypeOf(expr).Kind() == types.ListKind || device.IsAttribute(n.Write.AST(), expr)
}
