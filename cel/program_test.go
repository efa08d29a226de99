// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/transcript"
)

// cubic costs several thousand units for 20 numbers.
const cubic = "numbers.all(a, numbers.all(b, numbers.all(c, a + b + c >= 0)))"

// TestExpressions has verdicts, and what users are told of what does not compile or fails.
func TestExpressions(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	transcript.Run(t, "testdata/expressions.txt", func(t *testing.T, expression string) string {
		program, err := environment.Compile(t.Context(), expression)
		if err == nil {
			var verdict bool
			if verdict, err = program.Evaluate(t.Context(), input(t, 1), nil); err == nil {
				return fmt.Sprint(verdict)
			}
			require.False(t, verdict)
		}
		var failure *cel.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, expression, failure.Expression)
		return fmt.Sprintf("%s at %d:%d\n%s", failure.Reason, failure.Line, failure.Column, err)
	})
}

func TestDefaultCostLimit(t *testing.T) {
	deep := "numbers.all(a, numbers.all(b, numbers.all(c, numbers.all(d, numbers.all(e, a + b + c + d + e >= 0)))))"
	_, err := compile(t, newEnvironment(t, cel.Config{}), deep).Evaluate(t.Context(), input(t, 1), nil)
	failure := requireError(t, err, cel.ReasonCostLimit)
	require.Equal(t, []int{1, 1}, []int{failure.Line, failure.Column})
	require.ErrorContains(t, err, "cost limit of 1000000")
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

func TestNewEnvironmentRefusesUnusableOptions(t *testing.T) {
	_, err := cel.NewEnvironment(cel.Config{
		Name:    "broken",
		Options: []celgo.EnvOption{celgo.Variable("x", celgo.IntType), celgo.Variable("x", celgo.StringType)},
	})
	require.ErrorContains(t, err, "for broken")
}

// padded returns a valid expression of so many bytes.
func padded(length int) string {
	return "true" + strings.Repeat(" ", length-len("true"))
}

// TestCompileErrors has texts that are too long for a transcript, or no texts.
func TestCompileErrors(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	require.Equal(t, padded(cel.MaxExpressionLength), compile(t, environment, padded(cel.MaxExpressionLength)).Expression())
	for expression, want := range map[string]struct {
		reason  cel.Reason
		message string
	}{
		"":                                  {cel.ReasonInvalid, "Syntax error"},
		padded(cel.MaxExpressionLength + 1): {cel.ReasonTooLong, "the expression has 10241 bytes, the limit is 10240"},
		"n == 1 // \xff":                    {cel.ReasonInvalid, "not valid UTF-8"},
		strings.Repeat("(", 4000) + "true" + strings.Repeat(")", 4000): {cel.ReasonInvalid, "recursion limit exceeded"},
	} {
		program, err := environment.Compile(t.Context(), expression)
		require.Nil(t, program)
		require.Contains(t, requireError(t, err, want.reason).Message, want.message)
	}
}
