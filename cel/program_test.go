// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// cubic costs several thousand units for 20 numbers.
const cubic = "numbers.all(a, numbers.all(b, numbers.all(c, a + b + c >= 0)))"

func TestEvaluate(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for expression, want := range map[string]bool{
		"n == 1":                           true,
		"n == 2":                           false,
		"n == 2 && 1 / 0 == 1":             false,
		"1 / 0 == 1 && n == 2":             false,
		"1 / 0 == 1 || n == 1":             true,
		"numbers.sum() == 190":             true,
		"anything == 'text'":               true,
		"n > 0 ? dyn(true) : dyn('false')": true,
	} {
		t.Run(expression, func(t *testing.T) {
			verdict, err := compile(t, environment, expression).Evaluate(t.Context(), input(t, 1), nil)
			require.NoError(t, err)
			require.Equal(t, want, verdict)
		})
	}
}

func TestEvaluationErrors(t *testing.T) {
	for name, test := range map[string]struct {
		expression   string
		costLimit    uint64
		reason       cel.Reason
		line, column int
		message      string
		shown        []string
	}{
		"division": {
			expression: "true &&\n  1 / (n - 1) > 0",
			reason:     cel.ReasonRuntime, line: 2, column: 5,
			message: "division by zero",
			shown:   []string{" |   1 / (n - 1) > 0", " | ....^"},
		},
		"index": {
			expression: "numbers[20] == 1",
			reason:     cel.ReasonRuntime, line: 1, column: 8,
			message: "index out of bounds: 20",
		},
		"inside a macro": {
			expression: "numbers.map(x,\n 10 / x) == []",
			reason:     cel.ReasonRuntime, line: 2, column: 5,
			message: "division by zero",
			shown:   []string{" |  10 / x) == []", " | ....^"},
		},
		"missing key": {
			expression: "{'a': 1}['b'] == 1",
			reason:     cel.ReasonRuntime, line: 1, column: 9,
			message: "no such key: b. consider using CEL optional chaining",
		},
		"not a bool after all": {
			expression: "n == 1 ? dyn(n) : dyn(true)",
			reason:     cel.ReasonType, line: 1, column: 1,
			message: "the expression must return bool, it returned int",
			shown:   []string{" | n == 1 ? dyn(n) : dyn(true)", " | ^"},
		},
		"cost limit": {
			expression: cubic,
			costLimit:  1000,
			reason:     cel.ReasonCostLimit, line: 1, column: 1,
			message: "one evaluation exceeds the cost limit of 1000: ask for fewer devices or write a cheaper expression",
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := compile(t, newEnvironment(t, cel.Config{CostLimit: test.costLimit}), test.expression)
			verdict, err := program.Evaluate(t.Context(), input(t, 1), nil)
			require.False(t, verdict)
			failure := requireError(t, err, test.reason)
			require.Equal(t, []int{test.line, test.column}, []int{failure.Line, failure.Column}, "line and column of: %v", err)
			require.Equal(t, test.expression, failure.Expression)
			require.Contains(t, failure.Message, test.message)
			require.ErrorContains(t, err, strings.Join(test.shown, "\n"))
		})
	}
}

func TestDefaultCostLimit(t *testing.T) {
	deep := "numbers.all(a, numbers.all(b, numbers.all(c, numbers.all(d, numbers.all(e, a + b + c + d + e >= 0)))))"
	_, err := compile(t, newEnvironment(t, cel.Config{}), deep).Evaluate(t.Context(), input(t, 1), nil)
	_ = requireError(t, err, cel.ReasonCostLimit)
	require.ErrorContains(t, err, "cost limit of 1000000")
}

func TestProgramIsSafeForConcurrentUse(t *testing.T) {
	program := compile(t, newEnvironment(t, cel.Config{}), "numbers.exists(x, x == n)")
	inParallel(8, func(i int) {
		for n := range int64(40) {
			verdict, err := program.Evaluate(context.Background(), input(t, n), cel.NewBudget(10_000))
			if err != nil || verdict != (n < 20) {
				t.Errorf("goroutine %d, n = %d: got %v, %v", i, n, verdict, err)
			}
		}
	})
}

// An expression of type int is another program than one of type bool, also where both compile.
func TestEvaluateInt(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for expression, want := range map[string]int64{"n": 1, "numbers.sum() - n": 189, "n > 0 ? dyn(n) : dyn('none')": 1} {
		program, err := environment.CompileInt(t.Context(), expression)
		require.NoError(t, err)
		value, err := program.EvaluateInt(t.Context(), input(t, 1), nil)
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	_, err := environment.CompileInt(t.Context(), "n == 1")
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return int, it returns bool")
	_, err = environment.Compile(t.Context(), "n")
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return bool, it returns int")

	program, err := environment.CompileInt(t.Context(), "anything")
	require.NoError(t, err)
	_, err = program.EvaluateInt(t.Context(), input(t, 1), nil)
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return int, it returned string")
	_, err = compile(t, environment, "anything").Evaluate(t.Context(), input(t, 1), nil)
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return bool, it returned string")
}
