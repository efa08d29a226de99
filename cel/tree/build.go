// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"maps"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Builder creates parts of a checked expression, with the types and references that CEL needs to evaluate the parts. A part
// must not be used in two places of a tree. Copy it instead.
type Builder struct {
	checked *ast.AST
	// last is the ID of the last part that was created, or zero. names is the number of variable names that were created.
	last  int64
	names int
}

// NewBuilder returns a Builder that creates parts for an expression. It does not change the expression.
func NewBuilder(checked *ast.AST) *Builder { return &Builder{checked: checked} }

// AST returns the expression. It has the types and references of all parts, including the parts that were created so far.
func (b *Builder) AST() *ast.AST { return b.checked }

// TypeOf returns the type of a part.
func (b *Builder) TypeOf(expr ast.Expr) *types.Type { return b.checked.GetType(expr.ID()) }

// ElementType returns the type of the elements of a list.
func (b *Builder) ElementType(list ast.Expr) *types.Type {
	if t := b.TypeOf(list); t.Kind() == types.ListKind {
		return t.Parameters()[0]
	}
	return types.DynType
}

// Node returns the ID for a new part. It records the part's type and, unless it is nil, the part's reference.
func (b *Builder) Node(t *types.Type, reference *ast.ReferenceInfo) int64 {
	if b.last == 0 {
		b.last = ast.MaxID(b.checked)
		b.checked = ast.NewCheckedAST(ast.NewAST(b.checked.Expr(), b.checked.SourceInfo()), maps.Clone(b.checked.TypeMap()), maps.Clone(b.checked.ReferenceMap()))
	}
	b.last++
	b.checked.SetType(b.last, t)
	if reference != nil {
		b.checked.SetReference(b.last, reference)
	}
	return b.last
}

// Name returns a new variable name that no expression can contain.
func (b *Builder) Name() string {
	b.names++
	return fmt.Sprintf("#%d", b.names)
}

// Ident returns a reference to a variable.
func (b *Builder) Ident(name string, t *types.Type) ast.Expr {
	return ast.NewExprFactory().NewIdent(b.Node(t, ast.NewIdentReference(name, nil)), name)
}

// Literal returns a literal of the value.
func (b *Builder) Literal(value ref.Val) ast.Expr {
	return ast.NewExprFactory().NewLiteral(b.Node(value.Type().(*types.Type), nil), value)
}

// Call returns function(args). If overload is empty, CEL selects an overload when it evaluates the call.
func (b *Builder) Call(function, overload string, result *types.Type, args ...ast.Expr) ast.Expr {
	reference := ast.NewFunctionReference()
	if overload != "" {
		reference = ast.NewFunctionReference(overload)
	}
	return ast.NewExprFactory().NewCall(b.Node(result, reference), function, args...)
}

// Same returns "left in [right]". Unlike "left == right", this expression does not fail if the types of the two values differ.
func (b *Builder) Same(left, right ast.Expr) ast.Expr {
	list := ast.NewExprFactory().NewList(b.Node(types.NewListType(b.TypeOf(right)), nil), []ast.Expr{right}, nil)
	return b.Call(operators.In, overloads.InList, types.BoolType, left, list)
}

// Equals returns "left == right".
func (b *Builder) Equals(left, right ast.Expr) ast.Expr {
	return b.Call(operators.Equals, overloads.Equals, types.BoolType, left, right)
}

// And returns "left && right".
func (b *Builder) And(left, right ast.Expr) ast.Expr {
	return b.Call(operators.LogicalAnd, overloads.LogicalAnd, types.BoolType, left, right)
}

// Or returns "left || right".
func (b *Builder) Or(left, right ast.Expr) ast.Expr {
	return b.Call(operators.LogicalOr, overloads.LogicalOr, types.BoolType, left, right)
}

// Not returns "!operand".
func (b *Builder) Not(operand ast.Expr) ast.Expr {
	return b.Call(operators.LogicalNot, overloads.LogicalNot, types.BoolType, operand)
}

// Conditional returns "when ? yes : no".
func (b *Builder) Conditional(t *types.Type, when, yes, no ast.Expr) ast.Expr {
	return b.Call(operators.Conditional, overloads.Conditional, t, when, yes, no)
}

// Exists returns list.exists(x, body).
func (b *Builder) Exists(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	return b.quantifier(list, types.False, operators.LogicalOr, overloads.LogicalOr, body)
}

// All returns list.all(x, body).
func (b *Builder) All(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	return b.quantifier(list, types.True, operators.LogicalAnd, overloads.LogicalAnd, body)
}

// Filter returns list.filter(x, body).
func (b *Builder) Filter(list ast.Expr, body func(x ast.Expr) ast.Expr) ast.Expr {
	f, name := ast.NewExprFactory(), b.Name()
	element, result := b.ElementType(list), types.NewListType(b.ElementType(list))
	accumulator := func() ast.Expr { return b.Ident(f.AccuIdentName(), result) }
	listOf := func(elements ...ast.Expr) ast.Expr { return f.NewList(b.Node(result, nil), elements, nil) }
	appended := b.Call(operators.Add, overloads.AddList, result, accumulator(), listOf(b.Ident(name, element)))
	step := b.Conditional(result, body(b.Ident(name, element)), appended, accumulator())
	return f.NewComprehension(b.Node(result, nil), list, name, f.AccuIdentName(), listOf(), b.Literal(types.True), step, accumulator())
}

// Size returns size(list).
func (b *Builder) Size(list ast.Expr) ast.Expr { return b.Call("size", "", types.IntType, list) }

func (b *Builder) quantifier(list ast.Expr, init types.Bool, operator, overload string, body func(x ast.Expr) ast.Expr) ast.Expr {
	f, name := ast.NewExprFactory(), b.Name()
	accumulator := func() ast.Expr { return b.Ident(f.AccuIdentName(), types.BoolType) }
	step := b.Call(operator, overload, types.BoolType, accumulator(), body(b.Ident(name, b.ElementType(list))))
	return f.NewComprehension(b.Node(types.BoolType, nil), list, name, f.AccuIdentName(), b.Literal(init), b.Literal(types.True), step, accumulator())
}

// Joined applies each to every part and joins the results with the operator, as a balanced tree.
func (b *Builder) Joined(parts []ast.Expr, operator, overload string, each func(ast.Expr) ast.Expr) ast.Expr {
	if len(parts) == 1 {
		return each(parts[0])
	}
	middle := len(parts) / 2
	left := b.Joined(parts[:middle], operator, overload, each)
	right := b.Joined(parts[middle:], operator, overload, each)
	return b.Call(operator, overload, b.TypeOf(right), left, right)
}
