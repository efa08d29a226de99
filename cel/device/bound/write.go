// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Parts of an expression are written here, with the types and references that CEL
// needs if it is asked to evaluate them.

// again copies a part that is to stand in several places.
func (a *analyzer) again(expr ast.Expr) ast.Expr {
	result, ok := a.substituteParts(expr, nil)
	if !ok {
		return expr
	}
	return result
}

func (a *analyzer) writeLiteral(value ref.Val) ast.Expr {
	return ast.NewExprFactory().NewLiteral(a.newNode(value.Type().(*types.Type), nil), value)
}

func (a *analyzer) writeCall(function, overload string, result *types.Type, args ...ast.Expr) ast.Expr {
	return ast.NewExprFactory().NewCall(a.newNode(result, ast.NewFunctionReference(overload)), function, args...)
}

// writeSame writes "left in [right]": unlike "left == right" it does not fail if values
// of the two types can't be compared.
func (a *analyzer) writeSame(left, right ast.Expr) ast.Expr {
	t := types.NewListType(a.tree.GetType(right.ID()))
	list := ast.NewExprFactory().NewList(a.newNode(t, nil), []ast.Expr{right}, nil)
	return a.writeCall(operators.In, overloads.InList, types.BoolType, left, list)
}

func (a *analyzer) writeEquals(left, right ast.Expr) ast.Expr {
	return a.writeCall(operators.Equals, overloads.Equals, types.BoolType, left, right)
}

func (a *analyzer) writeAnd(left, right ast.Expr) ast.Expr {
	return a.writeCall(operators.LogicalAnd, overloads.LogicalAnd, types.BoolType, left, right)
}

func (a *analyzer) writeOr(left, right ast.Expr) ast.Expr {
	return a.writeCall(operators.LogicalOr, overloads.LogicalOr, types.BoolType, left, right)
}

func (a *analyzer) writeConditional(t *types.Type, when, yes, no ast.Expr) ast.Expr {
	return a.writeCall(operators.Conditional, overloads.Conditional, t, when, yes, no)
}

func (a *analyzer) writeNot(operand ast.Expr) ast.Expr {
	return a.writeCall(operators.LogicalNot, overloads.LogicalNot, types.BoolType, operand)
}

// writeExists writes list.exists(x, body), writeAll list.all(x, body).
func (a *analyzer) writeExists(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	return a.writeQuantifier(list, types.False, operators.LogicalOr, overloads.LogicalOr, body)
}

func (a *analyzer) writeAll(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	return a.writeQuantifier(list, types.True, operators.LogicalAnd, overloads.LogicalAnd, body)
}

func (a *analyzer) writeQuantifier(list ast.Expr, init types.Bool, operator, overload string, body func(x ast.Expr) ast.Expr) ast.Expr {
	f, name := ast.NewExprFactory(), a.newName()
	element := types.DynType
	if t := a.tree.GetType(list.ID()); t.Kind() == types.ListKind {
		element = t.Parameters()[0]
	}
	accumulator := func() ast.Expr { return a.newIdent(f.AccuIdentName(), types.BoolType) }
	step := a.writeCall(operator, overload, types.BoolType, accumulator(), body(a.newIdent(name, element)))
	return f.NewComprehension(a.newNode(types.BoolType, nil), list, name, f.AccuIdentName(), a.writeLiteral(init), a.writeLiteral(types.True), step, accumulator())
}
