// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

func TestObserverSeesCompilations(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed})
	for _, expression := range []string{"n == 1", "n == 1", "n ==", "n ==", padded(cel.MaxExpressionLength + 1), padded(cel.MaxExpressionLength + 1)} {
		_, _ = environment.Compile(t.Context(), expression)
	}
	want := []compilation{
		{environment: "numbers"},
		{environment: "numbers", hit: true},
		{environment: "numbers", failed: true},
		{environment: "numbers", hit: true, failed: true},
		// Expressions that are too long are not cached.
		{environment: "numbers", failed: true},
		{environment: "numbers", failed: true},
	}
	require.Empty(t, cmp.Diff(want, observed.compilations, cmp.AllowUnexported(compilation{})))
}

func TestObserverSeesEvaluations(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed, CostLimit: 1000})
	budget := cel.NewBudget(1_000_000)
	evaluate := func(expression string) error {
		_, err := compile(t, environment, expression).Evaluate(t.Context(), input(t, 1), budget)
		return err
	}
	require.NoError(t, evaluate("n == 1"))
	runtimeError := evaluate("1 / (n - 1) == 1")
	costError := evaluate(cubic)

	require.Len(t, observed.evaluations, 3)
	var sum uint64
	for _, e := range observed.evaluations {
		require.Equal(t, "numbers", e.environment)
		sum += e.cost
	}
	require.Equal(t, budget.Spent(), sum)
	require.NoError(t, observed.evaluations[0].err)
	require.Equal(t, runtimeError, observed.evaluations[1].err)
	require.Equal(t, costError, observed.evaluations[2].err)
	require.Greater(t, observed.evaluations[2].cost, uint64(1000))
}

// stopwatch is a Timer whose clock advances by one second with each call of Now.
type stopwatch struct {
	recorder
	looks     int
	durations []time.Duration
}

func (s *stopwatch) Now() time.Time {
	s.looks++
	return time.Unix(int64(s.looks), 0)
}

func (s *stopwatch) ObserveDuration(environment string, duration time.Duration) {
	if environment == "numbers" {
		s.durations = append(s.durations, duration)
	}
}

func TestTimer(t *testing.T) {
	watch := &stopwatch{}
	environment := newEnvironment(t, cel.Config{Observer: watch})
	program := compile(t, environment, "10 / n > 0")
	require.Zero(t, watch.looks, "compiling is not timed")
	for _, n := range []int64{1, 0} {
		_, _ = program.Evaluate(t.Context(), input(t, n), nil)
	}
	require.Equal(t, []time.Duration{time.Second, time.Second}, watch.durations, "a failed evaluation takes time, too")
	require.Len(t, watch.evaluations, 2)
	require.Error(t, watch.evaluations[1].err)
}

func TestBudget(t *testing.T) {
	observed := &recorder{}
	program := compile(t, newEnvironment(t, cel.Config{Observer: observed}), "numbers.all(x, x >= 0)")
	evaluate := func(budget *cel.Budget) error {
		_, err := program.Evaluate(t.Context(), input(t, 1), budget)
		return err
	}
	require.NoError(t, evaluate(nil))
	cost := observed.evaluations[0].cost
	require.Greater(t, cost, uint64(20), "one unit a number at least")

	budget := cel.NewBudget(2 * cost)
	require.Zero(t, budget.Spent())
	require.NoError(t, evaluate(budget))
	require.Equal(t, cost, budget.Spent())
	require.NoError(t, evaluate(budget), "a budget may be used up")

	err := evaluate(budget)
	failure := requireError(t, err, cel.ReasonBudget)
	require.Empty(t, failure.Expression)
	require.Zero(t, failure.Line)
	require.ErrorContains(t, err, "cost budget of")
	require.ErrorContains(t, err, "narrow the candidates")
	require.Equal(t, 3*cost, budget.Spent(), "what took place is counted")
	_ = requireError(t, evaluate(budget), cel.ReasonBudget)
}

func TestNilBudgetHasNoLimit(t *testing.T) {
	var budget *cel.Budget
	program := compile(t, newEnvironment(t, cel.Config{}), cubic)
	_, err := program.Evaluate(t.Context(), input(t, 1), budget)
	require.NoError(t, err)
	require.Zero(t, budget.Spent())
}

func TestFailedEvaluationsAreCharged(t *testing.T) {
	budget := cel.NewBudget(1_000_000)
	program := compile(t, newEnvironment(t, cel.Config{}), "numbers.all(x, 1 / (x - 19) < 1)")
	_, err := program.Evaluate(t.Context(), input(t, 1), budget)
	_ = requireError(t, err, cel.ReasonRuntime)
	require.Greater(t, budget.Spent(), uint64(20))
}

// TestRuntimeErrorBeatsBudget tests that an evaluation with a runtime error that also exceeds its budget returns the runtime
// error, which is more useful.
func TestRuntimeErrorBeatsBudget(t *testing.T) {
	program := compile(t, newEnvironment(t, cel.Config{}), "1 / (n - 1) == 1")
	_, err := program.Evaluate(t.Context(), input(t, 1), cel.NewBudget(0))
	_ = requireError(t, err, cel.ReasonRuntime)
}
