// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"errors"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// plain returns the standard CEL environment, without Kubernetes' libraries.
func plain(t testing.TB) *celgo.Env {
	t.Helper()
	env, err := celgo.NewEnv()
	require.NoError(t, err)
	return env
}

func TestBase(t *testing.T) {
	kubernetes, own := newEnvironment(t, cel.Config{}), newEnvironment(t, cel.Config{Base: plain(t)})
	for expression, in := range map[string]struct{ kubernetes, own bool }{
		"numbers.exists(x, x == n)":               {true, true},
		"numbers.sum() == 190":                    {true, false},
		"quantity('1k').isGreaterThan(n)":         {false, false},
		"[1, 'a'].size() == 2":                    {false, true},
		"duration('soon') == duration('1s')":      {false, true},
		"anything.matches('[') && numbers == [1]": {false, true},
	} {
		_, err := kubernetes.Compile(t.Context(), expression)
		require.Equal(t, in.kubernetes, err == nil, "%s: %v", expression, err)
		_, err = own.Compile(t.Context(), expression)
		require.Equal(t, in.own, err == nil, "%s: %v", expression, err)
	}
	verdict, err := compile(t, own, "numbers.exists(x, x == n)").Evaluate(t.Context(), input(t, 3), nil)
	require.NoError(t, err)
	require.True(t, verdict)
}

func TestBaseThatCanNotBeExtended(t *testing.T) {
	_, err := cel.NewEnvironment(cel.Config{
		Name: "broken", Base: plain(t),
		Options: []celgo.EnvOption{func(*celgo.Env) (*celgo.Env, error) { return nil, errors.New("no such library") }},
	})
	require.EqualError(t, err, "extend the CEL environment for broken: no such library")
}

// TestLimitsOnOwnBase tests that the limits also apply to an environment with its own Base.
func TestLimitsOnOwnBase(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Base: plain(t), CostLimit: 1000, Observer: observed})
	_, err := compile(t, environment, cubic).Evaluate(t.Context(), input(t, 1), nil)
	_ = requireError(t, err, cel.ReasonCostLimit)
	require.Greater(t, observed.evaluations[0].cost, uint64(1000))
}

// TestOptimizations tests that an expression with a bad constant compiles, and that its evaluation fails where it reads the
// constant.
func TestOptimizations(t *testing.T) {
	config := cel.Config{Base: plain(t), OptimizeConstants: true}
	optimized := newEnvironment(t, config)
	verdict, err := compile(t, optimized, "anything.matches('^te[x]t$')").Evaluate(t.Context(), input(t, 1), nil)
	require.NoError(t, err)
	require.True(t, verdict)

	_, err = compile(t, optimized, "anything.matches('[')").Evaluate(t.Context(), input(t, 1), nil)
	_ = requireError(t, err, cel.ReasonRuntime)
	require.ErrorContains(t, err, "missing closing ]")
	_, err = compile(t, optimized, "n == 1 || anything.matches('[')").Evaluate(t.Context(), input(t, 1), nil)
	require.NoError(t, err)
}

func TestMaxLength(t *testing.T) {
	observed := &recorder{}
	short := newEnvironment(t, cel.Config{MaxLength: 10})
	compile(t, short, padded(10))
	_, err := short.Compile(t.Context(), padded(11))
	_ = requireError(t, err, cel.ReasonTooLong)
	require.ErrorContains(t, err, "the expression has 11 bytes, the limit is 10: split it into several")

	// MaxLength allows longer expressions than usual. They are compiled, but not cached.
	long := newEnvironment(t, cel.Config{MaxLength: 2 * cel.MaxExpressionLength, Observer: observed})
	for range 2 {
		compile(t, long, padded(cel.MaxExpressionLength+1))
	}
	require.Equal(t, 2, observed.misses())
}

// tenfold is an estimator that returns ten elements for each list and ten cost units for each call.
type tenfold struct{}

func (tenfold) CallCost(string, string, []ref.Val, ref.Val) *uint64 {
	ten := uint64(10)
	return &ten
}

func (tenfold) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: 0, Max: 10}
}

func (tenfold) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return &checker.CallEstimate{CostEstimate: checker.FixedCostEstimate(10)}
}

func TestCosts(t *testing.T) {
	cost := func(config cel.Config) uint64 {
		observed := &recorder{}
		config.Observer = observed
		_, err := compile(t, newEnvironment(t, config), "n + 1 == 2").Evaluate(t.Context(), input(t, 1), nil)
		require.NoError(t, err)
		return observed.evaluations[0].cost
	}
	require.Equal(t, uint64(3), cost(cel.Config{}))
	require.Equal(t, uint64(21), cost(cel.Config{Costs: tenfold{}}))
}

func TestAdvice(t *testing.T) {
	environment := newEnvironment(t, cel.Config{CostLimit: 1000, Advice: cel.Advice{Evaluation: "do less", Budget: "do it less often"}})
	_, err := compile(t, environment, cubic).Evaluate(t.Context(), input(t, 1), nil)
	require.ErrorContains(t, err, "one evaluation exceeds the cost limit of 1000: do less")
	_, err = compile(t, environment, "n == 1").Evaluate(t.Context(), input(t, 1), cel.NewBudget(0))
	require.ErrorContains(t, err, "the evaluations together exceed the cost budget of 0: do it less often")
}
