// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import "github.com/celset/celset/allocator/internal/budget"

// Budget limits the work of one attempt to place a pod. The searches on all nodes share it.
type Budget = budget.Budget

// AttemptBudget tracks the work of one attempt. All Allocate calls of the attempt share it ([WithAttemptBudget]).
type AttemptBudget = budget.Attempt

// BudgetError is the error of an Allocate call that exhausted a budget before the search was complete.
type BudgetError = budget.Error

// BudgetUnit is the unit of a limit.
type BudgetUnit = budget.Unit

// These are the units of limits: CEL cost units ([WithCostBudget]), and search steps as in [Stats] ([WithStepBudget]).
const (
	BudgetCost  = budget.Cost
	BudgetSteps = budget.Steps
)

// DefaultBudget returns the default budget in the plugin's arguments.
func DefaultBudget() Budget { return budget.Default() }

// NewAttemptBudget returns an unused budget for an attempt.
func NewAttemptBudget(of Budget) *AttemptBudget { return budget.NewAttempt(of) }

// NewSeparateBudgets returns an unused budget with two limits. preferences limits the searches for better sets, and of limits
// all other searches. It is for reports and groups of pods. [NewAttemptBudget] derives the second limit for a single pod.
func NewSeparateBudgets(of, preferences Budget) *AttemptBudget {
	return budget.NewSeparate(of, preferences)
}
