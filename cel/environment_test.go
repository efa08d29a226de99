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
