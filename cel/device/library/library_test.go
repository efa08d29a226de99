// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/library"
)

func environment(t testing.TB) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(append(library.Options(), cel.Variable("list", cel.ListType(cel.DynType)), cel.Variable("other", cel.ListType(cel.DynType)))...)
	require.NoError(t, err)
	return env
}

func evaluated(t testing.TB, env *cel.Env, text string, input map[string]any) (ref.Val, error) {
	t.Helper()
	checked, issues := env.Compile(text)
	require.NoError(t, issues.Err(), text)
	program, err := env.Program(checked)
	require.NoError(t, err)
	if input == nil {
		input = map[string]any{}
	}
	value, _, err := program.Eval(input)
	return value, err
}

// TestExamples evaluates the examples of the package comment.
func TestExamples(t *testing.T) {
	env := environment(t)
	file, err := os.Open("doc.go")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	section, examples := "", map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimPrefix(lines.Text(), "//")
		if heading, ok := strings.CutPrefix(line, " # "); ok {
			section = heading
		}
		text, want, ok := strings.Cut(line, " // ")
		if !ok || !strings.HasPrefix(line, "\t") {
			continue
		}
		examples[section]++
		value, err := evaluated(t, env, text, nil)
		switch want {
		case "true":
			require.NoError(t, err, text)
			require.Equal(t, types.True, value, text)
		case "false":
			require.NoError(t, err, text)
			require.Equal(t, types.False, value, text)
		case "error":
			require.Error(t, err, text)
		default:
			require.Fail(t, "an example is true, false or an error", line)
		}
	}
	for _, function := range []string{"Connected", "Clique", "Ring", "Path", "Box", "Paired", "Segments", "SameOrIncludes"} {
		require.Greater(t, examples[function], 1, function)
	}
}

func TestNames(t *testing.T) {
	env := environment(t)
	for text, want := range map[string]string{
		"[1].connected(1, b, true)":       "connected() variable name must be a simple identifier",
		"[1].ring(a, a, true)":            "ring() needs two different variable names",
		"[1].box(a.b, [1], [1])":          "box() variable name must be a simple identifier",
		"[1].paired([1], a, 'b', true)":   "paired() variable name must be a simple identifier",
		"[1].segments(1, a.b, 1)":         "segments() variable name must be a simple identifier",
		"[1].segments('1', a, 1)":         "no matching overload for '@segments'",
		"[1].path(a, b)":                  "undeclared reference to 'path'",
		"[1].clique(a, b, 1)":             "no matching overload for '@clique'",
		"@connected([[true]])":            "token recognition error",
		"[1].connected(a, b, undeclared)": "undeclared reference to 'undeclared'",
		"1.sameOrIncludes()":              "no matching overload for 'sameOrIncludes'",
	} {
		_, issues := env.Compile(text)
		require.ErrorContains(t, issues.Err(), want, text)
	}
}

// TestScopes checks macros whose names hide the name of the list, and macros inside macros.
func TestScopes(t *testing.T) {
	env := environment(t)
	input := map[string]any{"list": []any{1, 2, 3}, "other": []any{3, 2, 1}}
	for _, text := range []string{
		"list.connected(list, b, b == list + 1)",
		"list.connected(a, list, list == a + 1)",
		"list.filter(x, x > 1).connected(a, b, b == a + 1)",
		"list.paired(list, list, b, list == b)",
		"list.paired(other, other, b, other == b)",
		"list.paired(other.filter(x, true), a, b, a == b)",
		"list.filter(x, true).paired(other, a, list, a == list)",
		"list.clique(a, b, other.filter(x, true).connected(c, d, c + a == d + b || c != d))",
		"list.filter(x, true).path(a, b, list.filter(y, y != a).paired(other.filter(z, z != a), c, d, c == d) && b == a + 1)",
		"list.box(list, [list], [3])",
		"list.segments(list.size(), list, list == list)",
		"list.segments(1, list, list)",
		"list.map(x, [x, x + 1]).all(pair, pair.ring(a, b, a < b))",
	} {
		value, err := evaluated(t, env, text, input)
		require.NoError(t, err, text)
		require.Equal(t, types.True, value, text)
	}
}

// TestErrors checks that an evaluation fails when it reads a value of a wrong type, and that invalid boxes fail.
func TestErrors(t *testing.T) {
	env := environment(t)
	input := map[string]any{"list": []any{1, "x", true}, "other": []any{1}}
	for text, want := range map[string]string{
		"list.connected(a, b, a)":                             "no such overload",
		"list.paired(other, a, b, b)":                         "no such overload",
		"list.box(a, [a], [1])":                               "no such overload",
		"other.box(a, [1], [1, 1])":                           "box has 2 sides, but an element has 1 coordinates",
		"other.box(a, [1], [1], [])":                          "box has 1 sides, but 0 circles",
		"other.box(a, [1], [1], [-3])":                        "box has a circle of -3 places: use zero or more",
		"other.box(a, dyn(1), [1])":                           "no such overload",
		"other.segments(0, a, a)":                             "segments has a size of 0: use one or more",
		"other.filter(a, false).segments(-2, a, a)":           "segments has a size of -2: use one or more",
		"other.segments(1, a, {1: a})":                        "segments has a key of type map: use a bool, a number, a string, bytes, or a list of them",
		"other.segments(1, a, [[a], [{1: a}]])":               "segments has a key of type list: use a bool",
		"other.segments(1, a, a / 0)":                         "division by zero",
		"other.segments(dyn('1'), a, a)":                      "no such overload",
		"list.map(x, 1 / 0 == x).exists(x, x)":                "division by zero",
		"list.ring(a, b, 1 / 0 == 1)":                         "division by zero",
		"other.paired(list, a, b, b / 0 == 1)":                "division by zero",
		"[" + strings.Repeat("1,", 64) + "].ring(a, b, true)": "ring is called on 64 elements, the limit is 63",
	} {
		_, err := evaluated(t, env, text, input)
		require.ErrorContains(t, err, want, text)
	}
}
