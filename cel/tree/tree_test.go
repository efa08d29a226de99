// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/parser"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/tree"
	"github.com/celset/celset/internal/testing/transcript"
)

// parsed returns the tree of an expression after macro expansion.
func parsed(t *testing.T, text string) ast.Expr {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), ext.Bindings(), ext.TwoVarComprehensions())
	require.NoError(t, err)
	result, issues := env.Parse(text)
	require.NoError(t, issues.Err(), text)
	return result.NativeRep().Expr()
}

// written returns the text of a tree. It returns "" for nil, and "loops" for a tree with comprehensions.
func written(expr ast.Expr) string {
	if expr == nil {
		return ""
	}
	text, err := parser.Unparse(expr, ast.NewSourceInfo(nil))
	if err != nil {
		return "loops"
	}
	return text
}

// TestTrees compares the recognized quantifiers, collections, bindings, members, conjuncts and free variables with a transcript.
func TestTrees(t *testing.T) {
	quantifiers := map[tree.Quantifier]string{tree.All: "all", tree.Exists: "exists", tree.ExistsOne: "exists one"}
	transcript.Run(t, "testdata/trees.txt", func(t *testing.T, text string) string {
		expr := parsed(t, text)
		var facts []string
		note := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
		if expr.Kind() == ast.ComprehensionKind {
			if is, holds := tree.QuantifierOf(expr.AsComprehension()); is != tree.NoQuantifier {
				note("%s %s", quantifiers[is], written(holds))
			}
			if keeps, element, ok := tree.CollectionOf(expr.AsComprehension()); ok {
				note("keeps [%s] as %s", written(keeps), written(element))
			}
		}
		if name, value, body, ok := tree.BindingOf(expr); ok {
			note("%s is %s in %s", name, written(value), written(body))
		}
		if member, ok := tree.MemberOf(expr); ok {
			note("member %q of %s, known %t, read %t", member.Name, written(member.Container), member.Known, member.Read)
		}
		var free []string
		tree.Visit(expr, func(part ast.Expr, hidden tree.Names) {
			if part.Kind() == ast.IdentKind && !hidden.Has(part.AsIdent()) {
				free = append(free, part.AsIdent())
			}
		})
		note("reads %s", strings.Join(free, " "))
		if conjuncts := tree.Conjuncts(expr); len(conjuncts) > 1 {
			var texts []string
			for _, conjunct := range conjuncts {
				texts = append(texts, written(conjunct))
			}
			note("conjuncts %s", strings.Join(texts, "; "))
		}
		return strings.Join(facts, ", ")
	})
}

func TestLiterals(t *testing.T) {
	text, ok := tree.Literal[types.String](parsed(t, "'a'"))
	require.True(t, ok)
	require.Equal(t, types.String("a"), text)
	_, ok = tree.Literal[types.Int](parsed(t, "'a'"))
	require.False(t, ok)
	_, ok = tree.Literal[types.Int](parsed(t, "a"))
	require.False(t, ok)
	require.True(t, tree.IsLiteral(parsed(t, "1"), types.Int(1)))
	require.False(t, tree.IsLiteral(parsed(t, "1u"), types.Int(1)))
	_, ok = tree.OnlyElement(parsed(t, "[?a]"))
	require.False(t, ok, "it may be missing")
}

// TestResultHasNoIterationVariable tests that a comprehension's iteration variables are not in scope in its result, as in
// cel-go. No macro expands to a result that would show the difference.
func TestResultHasNoIterationVariable(t *testing.T) {
	f := ast.NewExprFactory()
	loop := f.NewComprehensionTwoVar(1, f.NewList(2, nil, nil), "x", "y", "a", f.NewIdent(3, "a"),
		f.NewIdent(4, "x"), f.NewIdent(5, "y"), f.NewList(6, []ast.Expr{f.NewIdent(7, "x"), f.NewIdent(8, "y"), f.NewIdent(9, "a")}, nil))
	free := map[int64]bool{}
	tree.Visit(loop, func(part ast.Expr, hidden tree.Names) {
		if part.Kind() == ast.IdentKind {
			free[part.ID()] = !hidden.Has(part.AsIdent())
		}
	})
	require.Equal(t, map[int64]bool{3: true, 4: false, 5: false, 7: true, 8: true, 9: false}, free)
}

func TestScope(t *testing.T) {
	scope := tree.Scope[int]{}
	_, declared := scope.Lookup("x")
	require.False(t, declared)
	scope.Declare("x", 1)
	scope.Declare("x", 2)
	value, declared := scope.Lookup("x")
	require.True(t, declared)
	require.Equal(t, 2, value)
	scope.Forget("x", "x")
	require.False(t, scope.Has("x"))
}

func TestAlike(t *testing.T) {
	for _, pair := range [][2]string{
		{"a.b == 1", "a.b == 1"},
		{"a && b && c && d && e", "a && (b && (c && (d && e)))"},
		{"x.all(y, y > z)", "x.all(v, v > z)"},
		{"x.all(y, y.all(z, z > y))", "x.all(z, z.all(y, y > z))"},
		{"cel.bind(y, x, y + y)", "cel.bind(z, x, z + z)"},
		{"x.?y.orValue([?x.?z, {'a': 1}])", "x.?y.orValue([?x.?z, {'a': 1}])"},
		{"x.all(i, v, i < v)", "x.all(v, i, v < i)"},
	} {
		require.True(t, tree.Equivalent(parsed(t, pair[0]), parsed(t, pair[1])), "%v", pair)
	}
	for _, pair := range [][2]string{
		{"a.b", "a.c"},
		{"a.b", "has(a.b)"},
		{"1", "1u"},
		{"1", "1.0"},
		{"a && b", "b && a"},
		{"a && b", "a || b"},
		{"a && b", "a && b && b"},
		{"size(a)", "a.size()"},
		{"a - b", "b - a"},
		{"a - (b - c)", "a - b - c"},
		{"x.all(y, y > z)", "x.all(z, z > z)"},
		{"x.all(y, y > z)", "x.exists(y, y > z)"},
		{"x.all(y, x.all(z, y > z))", "x.all(y, x.all(z, z > y))"},
		{"x.all(y, x.all(z, y > 1))", "x.all(y, x.all(y, y > 1))"},
		{"x.all(y, true)", "z.all(y, true)"},
		{"x.all(i, v, i < v)", "x.all(i, v, v < i)"},
		{"cel.bind(y, x, y + y)", "cel.bind(y, x, y + x)"},
		{"[a, b]", "[a]"},
		{"[?a]", "[a]"},
		{"{'a': 1}", "{'b': 1}"},
		{"{'a': 1}", "{?'a': x}"},
		{"a", "1"},
	} {
		require.False(t, tree.Equivalent(parsed(t, pair[0]), parsed(t, pair[1])), "%v", pair)
	}
}

// TestBuiltPartsEvaluate tests that CEL can plan and evaluate built parts with the types and references that the Builder
// recorded.
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
