// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/tree"
)

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
		require.True(t, tree.Alike(parsed(t, pair[0]), parsed(t, pair[1])), "%v", pair)
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
		require.False(t, tree.Alike(parsed(t, pair[0]), parsed(t, pair[1])), "%v", pair)
	}
}
