// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"

	"github.com/celset/celset/cel"
)

// work is what one search does, held against its budgets and those of the attempt.
type work struct {
	ctx context.Context
	// steps is how often the search looked for a device, cost what evaluations cost.
	steps int64
	cost  *cel.Budget
	// stepLimit is of this search, attempt is shared with the others of an attempt, and may be nil.
	stepLimit int64
	attempt   *AttemptBudget
	// charged is what the budget of the attempt knows of.
	charged struct {
		steps int64
		cost  uint64
	}
}

// limit is a budget that is used up.
type limit struct {
	unit    BudgetUnit
	value   uint64
	attempt bool
}

// Cancelled is an error if the context or the attempt ended. It is asked before everything that may
// take long: a step may evaluate expressions on many devices.
func (w *work) Cancelled() error {
	if w.ctx.Err() == nil {
		return w.attempt.ended()
	}
	return fmt.Errorf("filter operation aborted: %w", cel.ContextError(w.ctx))
}

// exceeded is the budget that is used up, nil if there is none. Work is reported to the attempt
// if there is enough of it, and before the first step, so that nothing is begun when its budget
// is used up.
func (w *work) exceeded() *limit {
	switch {
	case w.steps > w.stepLimit:
		return &limit{unit: BudgetSteps, value: uint64(max(0, w.stepLimit))}
	case w.attempt == nil,
		w.steps > 1 && w.steps-w.charged.steps < attemptStepBatch && w.cost.Spent()-w.charged.cost < attemptCostBatch:
		return nil
	}
	w.charge()
	switch {
	case w.attempt.cost.Load() > w.attempt.costLimit:
		return &limit{BudgetCost, w.attempt.costLimit, true}
	case w.attempt.steps.Load() > w.attempt.stepLimit:
		return &limit{BudgetSteps, uint64(max(0, w.attempt.stepLimit)), true}
	default:
		return nil
	}
}

// charge reports to the attempt what was not reported yet.
func (w *work) charge() {
	if w.attempt == nil {
		return
	}
	steps, cost := w.steps, w.cost.Spent()
	w.attempt.steps.Add(steps - w.charged.steps)
	w.attempt.cost.Add(cost - w.charged.cost)
	w.charged.steps, w.charged.cost = steps, cost
}
