// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/tree"
)

// What was built is planned and evaluated by CEL with nothing but the types and references
// that the builder noted.
func TestBuiltPartsEvaluate(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("l", cel.ListType(cel.IntType)))
	require.NoError(t, err)
	checked, issues := env.Compile("l")
	require.NoError(t, issues.Err())
	known := len(checked.NativeRep().TypeMap())
	literal := func(b *tree.Builder, n int) ast.Expr { return b.Literal(types.Int(n)) }
	isOne := func(b *tree.Builder) func(ast.Expr) ast.Expr {
		return func(x ast.Expr) ast.Expr { return b.Equals(x, literal(b, 1)) }
	}
	for name, c := range map[string]struct {
		build func(b *tree.Builder, l ast.Expr) ast.Expr
		want  ref.Val
	}{
		"l.all(x, x == 1)":          {func(b *tree.Builder, l ast.Expr) ast.Expr { return b.All(l, isOne(b)) }, types.False},
		"l.exists(x, x == 1)":       {func(b *tree.Builder, l ast.Expr) ast.Expr { return b.Exists(l, isOne(b)) }, types.True},
		"size(l.filter(x, x == 1))": {func(b *tree.Builder, l ast.Expr) ast.Expr { return b.Size(b.Filter(l, isOne(b))) }, types.Int(1)},
		"1 in [2]":                  {func(b *tree.Builder, _ ast.Expr) ast.Expr { return b.Same(literal(b, 1), literal(b, 2)) }, types.False},
		"!(true && false)": {func(b *tree.Builder, _ ast.Expr) ast.Expr {
			return b.Not(b.And(b.Literal(types.True), b.Literal(types.False)))
		}, types.True},
		"false || true ? 1 : 2": {func(b *tree.Builder, _ ast.Expr) ast.Expr {
			return b.Conditional(types.IntType, b.Or(b.Literal(types.False), b.Literal(types.True)), literal(b, 1), literal(b, 2))
		}, types.Int(1)},
		"l[1]": {func(b *tree.Builder, l ast.Expr) ast.Expr {
			return b.Call(operators.Index, "", b.ElementType(l), l, literal(b, 1))
		}, types.Int(2)},
		"1 + 2 + 3 + 4 + 5": {func(b *tree.Builder, _ ast.Expr) ast.Expr {
			return b.Joined([]ast.Expr{literal(b, 1), literal(b, 2), literal(b, 3), literal(b, 4), literal(b, 5)},
				operators.Add, overloads.AddInt64, func(e ast.Expr) ast.Expr { return e })
		}, types.Int(15)},
	} {
		b := tree.NewBuilder(checked.NativeRep())
		built := c.build(b, b.AST().Expr())
		require.Equal(t, c.want.Type(), b.TypeOf(built), name)
		program, err := env.PlanProgram(ast.NewCheckedAST(ast.NewAST(built, b.AST().SourceInfo()), b.AST().TypeMap(), b.AST().ReferenceMap()))
		require.NoError(t, err, name)
		value, _, err := program.Eval(map[string]any{"l": []int64{1, 2}})
		require.NoError(t, err, name)
		require.Equal(t, c.want, value, name)
	}
	require.Len(t, checked.NativeRep().TypeMap(), known, "the expression is shared")
}

func TestNamesAreNew(t *testing.T) {
	b := tree.NewBuilder(ast.NewAST(nil, nil))
	require.NotEqual(t, b.Name(), b.Name())
}
