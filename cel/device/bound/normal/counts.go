// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package normal

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/celset/celset/cel/device/bound/key"
)

// HasCounts returns the condition that list has the same values as other, each equally often. It returns nil unless other is a
// list of constants.
func (n *Normalizer) HasCounts(list, other ast.Expr) ast.Expr {
	constants, ok := n.constants(other)
	if !ok {
		return nil
	}
	if !isSorted(constants) {
		return n.Write.And(n.IsFound(list), n.Write.Literal(types.False))
	}
	size := n.Write.Equals(n.Write.Size(n.Again(list)), n.Write.Literal(types.Int(len(constants))))
	var each []ast.Expr
	for from := 0; from < len(constants); {
		value, count := constants[from], 0
		for ; from < len(constants) && constants[from].AsLiteral() == value.AsLiteral(); from++ {
			count++
		}
		each = append(each, n.Write.Equals(n.countOf(list, value), n.Write.Literal(types.Int(count))))
	}
	return n.Write.And(size, n.conjunction(each, func(e ast.Expr) ast.Expr { return e }))
}

// isSorted reports whether the constants are all ints or all strings, in ascending order.
func isSorted(constants []ast.Expr) bool {
	for i, c := range constants {
		value := c.AsLiteral()
		if !key.IsOrdered(value) || value.Type() != constants[0].AsLiteral().Type() || i > 0 && key.Compare(constants[i-1].AsLiteral(), value) > 0 {
			return false
		}
	}
	return true
}

// SameCounts returns the condition that two lists have the same values, each equally often.
func (n *Normalizer) SameCounts(list, other ast.Expr) ast.Expr {
	size := n.Write.Equals(n.Write.Size(n.Again(list)), n.Write.Size(n.Again(other)))
	return n.Write.And(size, n.Write.All(n.Again(list), func(x ast.Expr) ast.Expr {
		return n.Write.Equals(n.countOf(list, x), n.countOf(other, x))
	}))
}

// countOf returns an expression for the number of times that a value occurs in a list.
func (n *Normalizer) countOf(list, value ast.Expr) ast.Expr {
	return n.Write.Size(n.Write.Filter(n.Again(list), func(x ast.Expr) ast.Expr { return n.Write.Same(x, value) }))
}
