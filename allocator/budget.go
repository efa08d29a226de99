// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "github.com/celset/celset/allocator/internal/budget"

// Budget limits the work of one attempt to place a pod, for the searches on all nodes together.
type Budget = budget.Budget

// AttemptBudget is shared by all Allocate calls of one attempt ([WithAttemptBudget]).
type AttemptBudget = budget.Attempt

// BudgetError is the error of an Allocate call that exhausted a budget before it had an answer.
type BudgetError = budget.Error

// BudgetUnit is the unit of a limit.
type BudgetUnit = budget.Unit

// These are the units of limits: CEL cost units ([WithCostBudget]), and steps as in [Stats] ([WithStepBudget]).
const (
	BudgetCost  = budget.Cost
	BudgetSteps = budget.Steps
)

// DefaultBudget returns the default budget in the plugin's arguments.
func DefaultBudget() Budget { return budget.Default() }

// NewAttemptBudget returns an unused budget for an attempt.
func NewAttemptBudget(of Budget) *AttemptBudget { return budget.NewAttempt(of) }

// NewSeparateBudgets returns an unused budget. The limits in preferences apply to searches for better sets, and the first argument
// limits all other searches. Reports and groups of pods choose both, because they are not attempts for one pod.
func NewSeparateBudgets(of, preferences Budget) *AttemptBudget {
	return budget.NewSeparate(of, preferences)
}
