// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Equivalent reports whether two expressions are equal up to the names of loop variables and the parentheses in chains of && or ||.
func Equivalent(a, b ast.Expr) bool { return (&comparison{}).equivalent(a, b) }

// comparison has the pairs of loop variables that correspond to each other in the two compared parts, the innermost pair last.
type comparison struct{ names [][2]string }

func (c *comparison) equivalent(a, b ast.Expr) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case ast.IdentKind:
		return c.sameName(a.AsIdent(), b.AsIdent())
	case ast.LiteralKind:
		x, y := a.AsLiteral(), b.AsLiteral()
		return x.Type() == y.Type() && x.Equal(y) == types.True
	case ast.SelectKind:
		x, y := a.AsSelect(), b.AsSelect()
		return x.FieldName() == y.FieldName() && x.IsTestOnly() == y.IsTestOnly() && c.equivalent(x.Operand(), y.Operand())
	case ast.ListKind:
		x, y := a.AsList(), b.AsList()
		return slices.Equal(x.OptionalIndices(), y.OptionalIndices()) && c.allAlike(x.Elements(), y.Elements())
	case ast.MapKind:
		return slices.EqualFunc(a.AsMap().Entries(), b.AsMap().Entries(), func(x, y ast.EntryExpr) bool {
			p, q := x.AsMapEntry(), y.AsMapEntry()
			return p.IsOptional() == q.IsOptional() && c.equivalent(p.Key(), q.Key()) && c.equivalent(p.Value(), q.Value())
		})
	case ast.CallKind:
		return c.callsAlike(a, b)
	case ast.ComprehensionKind:
		return c.loopsAlike(a.AsComprehension(), b.AsComprehension())
	default:
		// Messages are not compared, because no environment has message types.
		return false
	}
}

func (c *comparison) sameName(a, b string) bool {
	for _, pair := range slices.Backward(c.names) {
		if pair[0] == a || pair[1] == b {
			return pair == [2]string{a, b}
		}
	}
	return a == b
}

func (c *comparison) allAlike(a, b []ast.Expr) bool { return slices.EqualFunc(a, b, c.equivalent) }

func (c *comparison) callsAlike(a, b ast.Expr) bool {
	x, y := a.AsCall(), b.AsCall()
	if x.FunctionName() != y.FunctionName() || x.IsMemberFunction() != y.IsMemberFunction() {
		return false
	}
	switch x.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		return c.allAlike(chain(a, x.FunctionName()), chain(b, x.FunctionName()))
	}
	if x.IsMemberFunction() && !c.equivalent(x.Target(), y.Target()) {
		return false
	}
	return c.allAlike(x.Args(), y.Args())
}

// chain returns the operands of a chain of one operator, in order.
func chain(expr ast.Expr, operator string) []ast.Expr {
	if !IsCall(expr, operator) {
		return []ast.Expr{expr}
	}
	var operands []ast.Expr
	for _, arg := range expr.AsCall().Args() {
		operands = append(operands, chain(arg, operator)...)
	}
	return operands
}

func (c *comparison) loopsAlike(a, b ast.ComprehensionExpr) bool {
	if !c.equivalent(a.IterRange(), b.IterRange()) || !c.equivalent(a.AccuInit(), b.AccuInit()) || a.HasIterVar2() != b.HasIterVar2() {
		return false
	}
	outside := len(c.names)
	defer func() { c.names = c.names[:outside] }()
	c.names = append(c.names, [2]string{a.AccuVar(), b.AccuVar()})
	if !c.equivalent(a.Result(), b.Result()) {
		return false
	}
	c.names = append(c.names, [2]string{a.IterVar(), b.IterVar()}, [2]string{a.IterVar2(), b.IterVar2()})
	return c.equivalent(a.LoopCondition(), b.LoopCondition()) && c.equivalent(a.LoopStep(), b.LoopStep())
}
