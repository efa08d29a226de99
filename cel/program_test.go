// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/transcript"
)

// cubic costs several thousand units for 20 numbers.
const cubic = "numbers.all(a, numbers.all(b, numbers.all(c, a + b + c >= 0)))"

// TestExpressions compares the results and errors of expressions with a transcript.
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

// TestEvaluateInt tests that compiling the same text for int and for bool gives different programs.
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
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return int, but returns bool")
	_, err = environment.Compile(t.Context(), "n")
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return bool, but returns int")

	program, err := environment.CompileInt(t.Context(), "anything")
	require.NoError(t, err)
	_, err = program.EvaluateInt(t.Context(), input(t, 1), nil)
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return int, but returned string")
	_, err = compile(t, environment, "anything").Evaluate(t.Context(), input(t, 1), nil)
	require.Contains(t, requireError(t, err, cel.ReasonType).Message, "must return bool, but returned string")
}

func TestEvaluateAny(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for expression, want := range map[string]ref.Val{"n": types.Int(1), "n == 1": types.True, "string(n)": types.String("1")} {
		program, err := environment.CompileAny(t.Context(), expression)
		require.NoError(t, err)
		value, err := program.EvaluateAny(t.Context(), input(t, 1), nil)
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	program, err := environment.CompileAny(t.Context(), "n / (n - 1)")
	require.NoError(t, err)
	value, err := program.EvaluateAny(t.Context(), input(t, 1), nil)
	_ = requireError(t, err, cel.ReasonRuntime)
	require.Nil(t, value)
}

func TestNewEnvironmentRefusesUnusableOptions(t *testing.T) {
	_, err := cel.NewEnvironment(cel.Config{
		Name:    "broken",
		Options: []celgo.EnvOption{celgo.Variable("x", celgo.IntType), celgo.Variable("x", celgo.StringType)},
	})
	require.ErrorContains(t, err, "for broken")
}

// padded returns a valid expression of the given length in bytes.
func padded(length int) string {
	return "true" + strings.Repeat(" ", length-len("true"))
}

// TestCompileErrors has texts that are too long for a transcript, or not valid UTF-8.
func TestCompileErrors(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	require.Equal(t, padded(cel.MaxExpressionLength), compile(t, environment, padded(cel.MaxExpressionLength)).Expression())
	for expression, want := range map[string]struct {
		reason  cel.Reason
		message string
	}{
		"":                                  {cel.ReasonInvalid, "Syntax error"},
		padded(cel.MaxExpressionLength + 1): {cel.ReasonTooLong, "the expression has 10241 bytes, the limit is 10240: split it into several"},
		"n == 1 // \xff":                    {cel.ReasonInvalid, "not valid UTF-8"},
		strings.Repeat("(", 4000) + "true" + strings.Repeat(")", 4000): {cel.ReasonInvalid, "recursion limit exceeded"},
	} {
		program, err := environment.Compile(t.Context(), expression)
		require.Nil(t, program)
		require.Contains(t, requireError(t, err, want.reason).Message, want.message)
	}
}

// TestTextsThatGrow has expressions that once took seconds or a gigabyte to compile, and similar ones.
func TestTextsThatGrow(t *testing.T) {
	environment := newEnvironment(t, cel.Config{MaxLength: 100_000})
	nested := func(open, middle, shut string, depth int) string {
		return strings.Repeat(open, depth) + middle + strings.Repeat(shut, depth)
	}
	for name, refused := range map[string]struct{ text, message string }{
		"lists":          {nested("[", "1", "]", 60) + " == []", "a type has more than 32 names"},
		"maps":           {nested("{1: ", "1", "}", 40) + " == {}", "a type has more than 32 names"},
		"types":          {nested("type(", "1", ")", 60) + " == int", "a type has more than 32 names"},
		"types of maps":  {boundMaps(12), "a type has more than 32 names"},
		"types of lists": {"[" + nested("[", "1", "]", 20) + "].all(a, " + nested("[", "a", "]", 20) + " == [])", "a type has more than 32 names"},
		"macros":         {nested("[1].all(x, ", "true", ")", 60), "nested more than 100 levels deep"},
		"calls":          {nested("dyn(", "1", ")", 200) + " == 1", "nested more than 100 levels deep"},
		"words":          {strings.Repeat("1 +", 6000) + "1 == 1", "more than 10240 words and symbols"},
		"wide":           {"'" + strings.Repeat("é", 11_000) + "' == ''", "11000 characters that are not ASCII, the limit is 10240"},
		"wide comment":   {"true // " + strings.Repeat("é", 11_000), "11000 characters that are not ASCII, the limit is 10240"},
		"signs":          {strings.Repeat("-", 12_000) + "1 == 1", "more than 10240 words and symbols"},
		"after a raw":    {`r'\' == '' && ` + strings.Repeat("-", 12_000) + "1 == 1", "more than 10240 words and symbols"},
		"after a text":   {`"\"" == '' && ` + strings.Repeat("-", 12_000) + "1 == 1", "more than 10240 words and symbols"},
		"expanded":       {strings.Repeat("1 < 2 || ", 2000) + "true", "more than 6000 parts after its macros are expanded"},
		"overloads":      {"1 == 1" + strings.Repeat("||1+1+1+1+1+1+1+1+1+1==1", 250), "its types would be compared more than 600000 times"},
		"qualified":      {strings.Repeat("sets.contains([1],[1])||", 200) + strings.Repeat("1+1+1+1+1+1+1+1+1+1==1||", 100) + "true", "its types would be compared more than 600000 times"},
		"differences":    {strings.Repeat("(dyn(1)-dyn(1))+dyn(1)==1||", 250) + "true", "its types would be compared more than 600000 times"},
		"nulls":          {strings.Repeat("[null]+[null]==[null]||", 400) + "true", "its types would be compared more than 600000 times"},
		"elements":       {strings.Repeat("1==1||", 200) + "[" + strings.Repeat("1,", 3500) + "1].size() > 0", "its types would be compared more than 600000 times"},
		"entries":        {strings.Repeat("1==1||", 200) + "{" + strings.Repeat("1:1,", 1700) + "1:1}.size() > 0", "its types would be compared more than 600000 times"},
		"dyn":            {strings.Repeat("dyn(1)+dyn(1)==1||", 300) + "true", "its types would be compared more than 600000 times"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := environment.Compile(t.Context(), refused.text)
			failure := requireError(t, err, cel.ReasonTooLong)
			require.Contains(t, failure.Message, refused.message)
		})
	}
	compile(t, environment, "optional.of(true)"+strings.Repeat(".optMap(x, x)", 20)+".value()")
	compile(t, environment, nested("(", "true", ")", 200))
	compile(t, environment, "'"+strings.Repeat("a b ", 2000)+"' == ''")
	compile(t, environment, strings.Repeat("// not a word of it counts\n", 300)+"true")
}

// boundMaps returns nested bindings of maps. Each map has the previous map as key and as value.
func boundMaps(levels int) string {
	text := "a" + strconv.Itoa(levels) + " == a" + strconv.Itoa(levels)
	for i := levels; i > 0; i-- {
		text = fmt.Sprintf("[{a%d: a%d}].all(a%d, %s)", i-1, i-1, i, text)
	}
	return "[1].all(a0, " + text + ")"
}

// TestOptionalMacros tests that the replaced macros optMap and optFlatMap have the same results as CEL's macros.
func TestOptionalMacros(t *testing.T) {
	environment := newEnvironment(t, cel.Config{})
	for text, want := range map[string]bool{
		"optional.of(2).optMap(x, x + 1).value() == 3":                                      true,
		"optional.none().optMap(x, x + 1).hasValue()":                                       false,
		"optional.of(2).optFlatMap(x, optional.of(x + 1)).value() == 3":                     true,
		"optional.of(2).optFlatMap(x, optional.none()).hasValue()":                          false,
		"optional.none().optFlatMap(x, optional.of(x)).hasValue()":                          false,
		"optional.of(2).optMap(x, optional.of(3).optMap(y, x * y).value()).value() == 6":    true,
		"optional.of(optional.of(2)).optFlatMap(x, x).value() == 2":                         true,
		"optional.of(2).optMap(x, [x].map(y, y + x)).value() == [4]":                        true,
		"[optional.of(1), optional.none()].map(o, o.optMap(x, x + 1).orValue(0)) == [2, 0]": true,
		"[optional.of(1)].exists(x, x.optMap(x, x + 1).optMap(x, x + 1).optMap(x, x) == x)": false,
	} {
		verdict, err := compile(t, environment, text).Evaluate(t.Context(), input(t, 1), nil)
		require.NoError(t, err, text)
		require.Equal(t, want, verdict, text)
	}
}
