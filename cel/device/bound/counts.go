// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/celset/celset/cel/device/bound/key"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// hasCounts writes that a list has the constants of another one, as often as they are there. It is
// nil if there are none.
func (n *normalizer) hasCounts(list, other ast.Expr) ast.Expr {
	constants, ok := n.constants(other)
	if !ok {
		return nil
	}
	if !isSorted(constants) {
		return n.write.And(n.isFound(list), n.write.Literal(types.False))
	}
	size := n.write.Equals(n.write.Size(n.again(list)), n.write.Literal(types.Int(len(constants))))
	var each []ast.Expr
	for from := 0; from < len(constants); {
		value, count := constants[from], 0
		for ; from < len(constants) && constants[from].AsLiteral() == value.AsLiteral(); from++ {
			count++
		}
		each = append(each, n.write.Equals(n.countOf(list, value), n.write.Literal(types.Int(count))))
	}
	return n.write.And(size, n.conjunction(each, func(e ast.Expr) ast.Expr { return e }))
}

// isSorted reports whether all are ints or all strings, in their order.
func isSorted(constants []ast.Expr) bool {
	for i, c := range constants {
		value := c.AsLiteral()
		if !key.IsOrdered(value) || value.Type() != constants[0].AsLiteral().Type() || i > 0 && key.Compare(constants[i-1].AsLiteral(), value) > 0 {
			return false
		}
	}
	return true
}

// sameCounts writes that two lists have the same values, each as often.
func (n *normalizer) sameCounts(list, other ast.Expr) ast.Expr {
	size := n.write.Equals(n.write.Size(n.again(list)), n.write.Size(n.again(other)))
	return n.write.And(size, n.write.All(n.again(list), func(x ast.Expr) ast.Expr {
		return n.write.Equals(n.countOf(list, x), n.countOf(other, x))
	}))
}

// countOf writes how often a value is in a list.
func (n *normalizer) countOf(list, value ast.Expr) ast.Expr {
	return n.write.Size(n.write.Filter(n.again(list), func(x ast.Expr) ast.Expr { return n.write.Same(x, value) }))
}
