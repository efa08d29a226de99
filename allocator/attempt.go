// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"sync/atomic"
)

// The budgets of an Allocate call are about one node. A scheduler asks for thousands of
// nodes in one attempt to place a pod, and an attempt that stays just below the budget on
// each of them lasts for minutes. So all Allocate calls of one attempt may share a budget
// as well.

// A search reports what it used up in batches, so that searches which run at the same time
// don't contend for the counters: after so many steps, and after evaluations that cost so
// much. The budget is exceeded by at most this for each of them, and one evaluation.
const (
	attemptStepBatch = 256
	attemptCostBatch = 20_000
)

// AttemptBudget is what all Allocate calls of one attempt may use up together, on whatever
// nodes and at the same time. It is safe for concurrent use.
//
// That the attempt failed depends on the nodes that were visited, and on what was known of
// them, but not on which of the searches went first: it is the sum that counts.
type AttemptBudget struct {
	costLimit uint64
	stepLimit int64
	cost      atomic.Uint64
	steps     atomic.Int64
	end       atomic.Pointer[error]
	// preferences is a budget of its own, for choosing among the sets that would do.
	preferences *AttemptBudget
}

// NewAttemptBudget returns a budget of cost, in CEL cost units, and steps, as in [Stats], and as
// much again for preferences.
func NewAttemptBudget(cost uint64, steps int64) *AttemptBudget {
	return &AttemptBudget{costLimit: cost, stepLimit: steps, preferences: &AttemptBudget{costLimit: cost, stepLimit: steps}}
}

// LimitPreferences replaces what choosing among the sets that would do may use up: the best set so
// far is allocated then. It is called before the budget is used.
func (b *AttemptBudget) LimitPreferences(cost uint64, steps int64) {
	b.preferences.costLimit, b.preferences.stepLimit = cost, steps
}

// forPreferences is the part of the budget for preferences. nil if there is no budget.
func (b *AttemptBudget) forPreferences() *AttemptBudget {
	if b == nil {
		return nil
	}
	return b.preferences
}

// Cost returns what was charged so far, in CEL cost units.
func (b *AttemptBudget) Cost() uint64 { return b.cost.Load() }

// Steps returns how many steps were charged so far.
func (b *AttemptBudget) Steps() int64 { return b.steps.Load() }

// End ends all searches of the attempt, those that are running too, with or without CEL
// constraints. Their errors wrap err. Only the first call has an effect.
func (b *AttemptBudget) End(err error) {
	b.end.CompareAndSwap(nil, &err)
	b.preferences.end.CompareAndSwap(nil, &err)
}

// ended is why the attempt was ended, nil if it was not.
func (b *AttemptBudget) ended() error {
	if b == nil {
		return nil
	}
	if err := b.end.Load(); err != nil {
		return fmt.Errorf("filter operation aborted: %w", *err)
	}
	return nil
}

// WithAttemptBudget lets searches with CEL constraints share a budget, beside those of
// [WithCostBudget] and [WithStepBudget], which are for each of them. An Allocate call that
// would exceed it returns a [*BudgetError].
func WithAttemptBudget(budget *AttemptBudget) Option {
	return func(o *options) { o.attempt = budget }
}
