// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

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

// The error of the evaluation is the more useful one.
func TestRuntimeErrorBeatsBudget(t *testing.T) {
	program := compile(t, newEnvironment(t, cel.Config{}), "1 / (n - 1) == 1")
	_, err := program.Evaluate(t.Context(), input(t, 1), cel.NewBudget(0))
	_ = requireError(t, err, cel.ReasonRuntime)
}
