// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

func TestNewEnvironmentRefusesUnusableOptions(t *testing.T) {
	_, err := cel.NewEnvironment(cel.Config{
		Name:    "broken",
		Options: []celgo.EnvOption{celgo.Variable("x", celgo.IntType), celgo.Variable("x", celgo.StringType)},
	})
	require.ErrorContains(t, err, "for broken")
}

func TestCompileAccepts(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for name, expression := range map[string]string{
		"bool":                 "n == 1",
		"constant":             "true",
		"several lines":        "numbers.all(x,\n  x >= 0) &&\nn > 0",
		"comment":              "n > 0 // is positive",
		"dyn":                  "anything",
		"dyn of a conditional": "n > 0 ? dyn(true) : dyn(1)",
		"the longest":          padded(cel.MaxExpressionLength),
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, expression, compile(t, environment, expression).Expression())
		})
	}
}

// padded returns a valid expression of so many bytes.
func padded(length int) string {
	return "true" + strings.Repeat(" ", length-len("true"))
}

func TestCompileErrors(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for name, test := range map[string]struct {
		expression   string
		reason       cel.Reason
		line, column int
		message      string
		// shown are lines that the error text must contain one below the other.
		shown []string
	}{
		"unknown name": {
			expression: "n == number",
			reason:     cel.ReasonInvalid, line: 1, column: 6,
			message: "undeclared reference to 'number'",
			shown:   []string{" | n == number", " | .....^"},
		},
		"in the third line": {
			expression: "n > 0 &&\nnumbers.all(x, x >= 0) &&\n  numbers.exist(x, x > 3)",
			reason:     cel.ReasonInvalid, line: 3, column: 16,
			message: "undeclared reference to 'exist'",
			shown:   []string{" |   numbers.exist(x, x > 3)", " | ...............^"},
		},
		"types don't fit": {
			expression: "n ==\n'one'",
			reason:     cel.ReasonInvalid, line: 1, column: 3,
			message: "no matching overload for '_==_'",
			shown:   []string{" | n ==", " | ..^"},
		},
		"syntax": {
			expression: "n ==",
			reason:     cel.ReasonInvalid, line: 1, column: 5,
			message: "Syntax error",
			shown:   []string{" | n ==", " | ....^"},
		},
		"empty": {
			reason: cel.ReasonInvalid, line: 1, column: 1,
			message: "Syntax error",
		},
		"int": {
			expression: "n + 1",
			reason:     cel.ReasonType, line: 1, column: 1,
			message: "the expression must return bool, it returns int",
			shown:   []string{" | n + 1", " | ^"},
		},
		"list": {
			expression: "numbers",
			reason:     cel.ReasonType, line: 1, column: 1,
			message: "it returns list(int)",
		},
		"too long": {
			expression: padded(cel.MaxExpressionLength + 1),
			reason:     cel.ReasonTooLong,
			message:    "the expression has 10241 bytes, the limit is 10240",
		},
		"not UTF-8": {
			expression: "n == 1 // \xff",
			reason:     cel.ReasonInvalid,
			message:    "not valid UTF-8",
		},
		"nested too deeply": {
			expression: strings.Repeat("(", 4000) + "true" + strings.Repeat(")", 4000),
			reason:     cel.ReasonInvalid,
			message:    "recursion limit exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := environment.Compile(t.Context(), test.expression)
			require.Nil(t, program)
			failure := requireError(t, err, test.reason)
			require.Equal(t, []int{test.line, test.column}, []int{failure.Line, failure.Column}, "line and column of: %v", err)
			require.Contains(t, failure.Message, test.message)
			require.ErrorContains(t, err, failure.Message)
			require.ErrorContains(t, err, strings.Join(test.shown, "\n"))
		})
	}
}

// CEL's own checks panic over these.
func TestCompileSurvivesPanics(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for _, expression := range []string{"[?dyn(1)].size() == 1", "{'a': 1, ?'b': dyn(1)}.size() == 1"} {
		_, err := environment.Compile(t.Context(), expression)
		var failure *cel.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, cel.ReasonInvalid, failure.Reason)
		require.Equal(t, expression, failure.Expression)
		require.ErrorContains(t, err, "write it another way")
	}
}

func TestCompileErrorListsAllMistakes(t *testing.T) {
	_, err := newEnvironment(t, cel.Config{}).Compile(t.Context(), "first == 1 &&\nsecond == 2")
	failure := requireError(t, err, cel.ReasonInvalid)
	require.Equal(t, "first == 1 &&\nsecond == 2", failure.Expression)
	require.Equal(t, 1, failure.Line)
	require.ErrorContains(t, err, "undeclared reference to 'first'")
	require.ErrorContains(t, err, "undeclared reference to 'second'")
}
