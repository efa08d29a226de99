// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/parser"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/tree"
)

// parsed is the tree of an expression whose macros are expanded.
func parsed(t *testing.T, text string) ast.Expr {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), ext.Bindings(), ext.TwoVarComprehensions())
	require.NoError(t, err)
	result, issues := env.Parse(text)
	require.NoError(t, issues.Err(), text)
	return result.NativeRep().Expr()
}

// written is the text of a tree, empty for none.
func written(t *testing.T, expr ast.Expr) string {
	t.Helper()
	if expr == nil {
		return ""
	}
	text, err := parser.Unparse(expr, ast.NewSourceInfo(nil))
	require.NoError(t, err)
	return text
}

func TestQuantifiers(t *testing.T) {
	for text, want := range map[string]struct {
		is    tree.Quantifier
		holds string
	}{
		"l.all(x, x > 1)":                      {tree.All, "x > 1"},
		"l.exists(x, x > 1)":                   {tree.Exists, "x > 1"},
		"l.exists_one(x, x > 1)":               {tree.ExistsOne, "x > 1"},
		"l.all(i, x, x > i)":                   {tree.All, "x > i"},
		"l.exists(i, x, x > i)":                {tree.Exists, "x > i"},
		"l.existsOne(i, x, x > i)":             {tree.ExistsOne, "x > i"},
		"l.filter(x, x > 1)":                   {},
		"l.map(x, x > 1)":                      {},
		"l.transformMap(k, x, x > 1)":          {},
		"cel.bind(x, true, x && l.all(y, y))":  {},
		"cel.bind(x, false, x || l.all(y, y))": {},
	} {
		is, holds := tree.QuantifierOf(parsed(t, text).AsComprehension())
		require.Equal(t, want.is, is, text)
		require.Equal(t, want.holds, written(t, holds), text)
	}
}

func TestCollections(t *testing.T) {
	for text, want := range map[string][]string{
		"l.filter(x, x > 1)":                  {"x > 1", "x"},
		"l.map(x, x + 1)":                     {"", "x + 1"},
		"l.map(x, x > 1, x + 1)":              {"x > 1", "x + 1"},
		"l.map(x, [x])":                       {"", "[x]"},
		"l.transformList(i, x, x + i)":        {"", "x + i"},
		"l.transformList(i, x, x > i, x + i)": {"x > i", "x + i"},
		"l.all(x, x > 1)":                     nil,
		"l.exists_one(x, x > 1)":              nil,
		"l.transformMap(k, x, x + 1)":         nil,
		"cel.bind(x, [], x + [1])":            nil,
	} {
		keeps, element, ok := tree.CollectionOf(parsed(t, text).AsComprehension())
		require.Equal(t, want != nil, ok, text)
		if ok {
			require.Equal(t, want, []string{written(t, keeps), written(t, element)}, text)
		}
	}
}

func TestBindings(t *testing.T) {
	name, value, body, ok := tree.BindingOf(parsed(t, "cel.bind(x, 1 + 2, x * x)"))
	require.True(t, ok)
	require.Equal(t, []string{"x", "1 + 2", "x * x"}, []string{name, written(t, value), written(t, body)})
	for _, text := range []string{"x", "[].all(x, x)", "[].map(x, x)", "[].exists_one(x, x)"} {
		_, _, _, ok := tree.BindingOf(parsed(t, text))
		require.False(t, ok, text)
	}
}

func TestMembers(t *testing.T) {
	for text, want := range map[string]tree.Member{
		"of.name":      {Name: "name", Known: true, Read: true},
		"of['name']":   {Name: "name", Known: true, Read: true},
		"of[index]":    {Read: true},
		"of[0]":        {Read: true},
		"of.?name":     {Name: "name", Known: true},
		"of[?'name']":  {Name: "name", Known: true},
		"of[?index]":   {},
		"has(of.name)": {Name: "name", Known: true},
	} {
		member, ok := tree.MemberOf(parsed(t, text))
		require.True(t, ok, text)
		require.Equal(t, "of", written(t, member.Container), text)
		member.Container = nil
		require.Equal(t, want, member, text)
	}
	for _, text := range []string{"of", "'name' in of", "name(of)", "of.name()", "[of.name]"} {
		_, ok := tree.MemberOf(parsed(t, text))
		require.False(t, ok, text)
	}
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

func TestConjuncts(t *testing.T) {
	var conjuncts []string
	for _, conjunct := range tree.Conjuncts(parsed(t, "a && (b && c) && (d || e && f)")) {
		conjuncts = append(conjuncts, written(t, conjunct))
	}
	require.Equal(t, []string{"a", "b", "c", "d || e && f"}, conjuncts)
}

func TestNamesHideOthers(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                   "x",
		"x.all(y, x == y)":                    "x x",
		"x.all(x, x)":                         "x",
		"x.all(x, x) && x":                    "x x",
		"x.all(y, x.all(x, x == y))":          "x x",
		"cel.bind(x, x, x)":                   "x",
		"cel.bind(x, z, cel.bind(z, x, x))":   "z",
		"cel.bind(x, cel.bind(x, x, x), x+z)": "x z",
		"z.all(x, y, x == y && z == y) || x":  "z z x",
		"z.transformMap(x, y, y + z).x + y":   "z z y",
		"{x: z}[x].f(y) in [x]":               "x z x y x",
		"T{f: x}.g":                           "x",
		"x.map(x, x).filter(x, x).all(z, z)":  "x",
	} {
		var free []string
		tree.Visit(parsed(t, text), func(part ast.Expr, hidden tree.Names) {
			if part.Kind() == ast.IdentKind && !hidden.Has(part.AsIdent()) {
				free = append(free, part.AsIdent())
			}
		})
		require.Equal(t, want, strings.Join(free, " "), text)
	}
}

// The result of a comprehension is outside of the scope of its iteration variables, as for
// cel-go: no macro shows that.
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
