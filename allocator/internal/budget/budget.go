// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the work of searches. A search may have too many sets to try, and the bounds don't always help. Two
// limits end such a search: a limit on the cost of all evaluations, counted by [cel.Budget], and a limit on the steps, for a
// search that evaluates little. The limits are on work instead of time, so that a search has the same result on slow and fast
// machines. The deadline of the context is the last resort.
//
// A search counts its [Work]. All searches of one attempt to place a pod share an [Attempt]. An [Error] counts the undecided
// sets.
//
// A search without CEL constraints has no budget. It must behave like upstream's search, which is limited only by the context.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cel"
)

// Budget limits the work of one attempt to place a pod. The searches on all nodes share it. A search on one node, and the
// searches for better sets, get fixed parts of it:
//
//	                             cost    steps
//	all nodes                       1        1
//	one node                      1/2      1/2
//	better sets, all nodes        1/5     1/10
//	better sets, one node        1/10    1/100
//
// Two nodes may be searched at the same time, so each node gets half. The part for better sets is small, because the pod
// already has a set and other pods wait. It is enough to evaluate an expression for every set of four of 16 devices.
type Budget struct {
	// Cost is the cost of evaluations, in CEL cost units.
	Cost uint64
	// Steps is the number of steps of the search, as in answer.Stats.
	Steps int64
}

// Default returns the default budget in the plugin's arguments.
func Default() Budget {
	return Budget{Cost: uint64(configv1alpha1.DefaultBudgetCost), Steps: configv1alpha1.DefaultBudgetSteps}
}

// OnNode returns the part of the budget for the search on one node.
func OnNode(b Budget) Budget {
	return Budget{Cost: max(1, b.Cost/2), Steps: max(1, b.Steps/2)}
}

// preferencesOf returns the part of the budget for better sets on all nodes.
func preferencesOf(b Budget) Budget { return Budget{Cost: b.Cost / 5, Steps: b.Steps / 10} }

// PreferencesOnNode returns the part of the budget for better sets on one node.
func PreferencesOnNode(b Budget) Budget { return Budget{Cost: b.Cost / 10, Steps: b.Steps / 100} }

// Unit is the unit of a limit.
type Unit string

const (
	// Cost is the cost of evaluations, in CEL cost units.
	Cost Unit = "CEL cost units"
	// Steps is the number of steps of the search.
	Steps Unit = "steps"
)

// Error is the error of an Allocate call that exhausted a budget before the search was complete. It concerns the claim instead
// of the node, because the search would be as long on other nodes. Nothing was allocated.
type Error struct {
	// Claim is the claim with the constraint whose set the search was completing.
	Claim types.NamespacedName
	// Constraint is the name of the CEL constraint whose set the search was completing.
	Constraint string
	// Node is the name of the node.
	Node string
	// Unit and Limit describe the exhausted budget.
	Unit  Unit
	Limit uint64
	// Attempt is true if the budget for all nodes together was exhausted.
	Attempt bool
	// SetsLeft is the number of undecided sets of the constraint on the node, and Sets is the number of all its sets. Both
	// assume the last tried alternatives, and the last tried devices of requests that the constraint does not cover. Each
	// request is counted independently, so sets that contain a device twice are included.
	SetsLeft, Sets *big.Int

	err error
}

// NewError returns the error for a claim that exhausted a budget on a node. cause is the error of the evaluation that exceeded
// the cost budget. It is nil if the steps were exhausted.
func NewError(of Limit, claim *resourceapi.ResourceClaim, node string, cause error) *Error {
	return &Error{
		Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, Node: node,
		Unit: of.Unit, Limit: of.Value, Attempt: of.attempt, SetsLeft: new(big.Int), Sets: new(big.Int), err: cause,
	}
}

// Error returns a message that says how to avoid the error.
func (e *Error) Error() string {
	what, raise, cheaper := "the evaluations together exceed the cost budget", "cost", " write a cheaper expression,"
	switch {
	case e.Attempt && e.Unit == Steps:
		what, raise = "the searches on all nodes together exceed the step budget", "steps"
	case e.Attempt:
		what = "the evaluations on all nodes together exceed the cost budget"
	case e.Unit == Steps:
		what, raise = "the search exceeds the step budget", "steps"
	}
	if e.Unit == Steps {
		cheaper = " split the expression into simple conditions joined by &&,"
	}
	return fmt.Sprintf("claim %s, constraint %s, node %s: %s of %d %s, with %d of %d sets of devices left undecided: "+
		"narrow the candidates with selectors or matchAttribute,%s or raise budget.%s in the scheduler plugin's DynamicResourcesCELArgs",
		e.Claim, e.Constraint, e.Node, what, e.Limit, e.Unit, e.SetsLeft, e.Sets, cheaper, raise)
}

// Unwrap returns the [*cel.Error] of the evaluation that exceeded the budget. It returns nil if the steps were exhausted.
func (e *Error) Unwrap() error { return e.err }

// IsExceeded reports whether err is the error of an evaluation that exceeded the cost budget of the search.
func IsExceeded(err error) bool {
	failure, ok := errors.AsType[*cel.Error](err)
	return ok && failure.Reason == cel.ReasonBudget
}

// Each Allocate call has limits for one node. In one attempt to place a pod, a scheduler may try thousands of nodes. If the
// search on each node stayed just below the limits, the attempt would last for minutes. So all calls of one attempt share a
// budget, too.

// A search charges the attempt in batches of steps or cost, so that concurrent searches don't contend for the counters. So each
// search exceeds the budget by at most one batch and one evaluation.
const (
	attemptStepBatch = 256
	attemptCostBatch = 20_000
)

// Attempt is the budget of all Allocate calls in one attempt to place a pod, on any nodes. It is safe for concurrent use.
//
// The nodes visited and the cached results determine whether an attempt exhausts the budget. The order of the searches does not
// matter, because only the total is limited.
type Attempt struct {
	costLimit uint64
	stepLimit int64
	cost      atomic.Uint64
	steps     atomic.Int64
	end       atomic.Pointer[error]
	// preferences is the separate budget for better sets.
	preferences *Attempt
}

// NewAttempt returns an unused budget for an attempt.
func NewAttempt(budget Budget) *Attempt {
	return NewSeparate(budget, preferencesOf(budget))
}

// NewSeparate returns an unused budget. preferences limits searches for better sets, and budget limits all other searches. It
// is for reports and for groups of pods, because NewAttempt derives the second limit for a single pod.
func NewSeparate(budget, preferences Budget) *Attempt {
	return &Attempt{
		costLimit: budget.Cost, stepLimit: budget.Steps,
		preferences: &Attempt{costLimit: preferences.Cost, stepLimit: preferences.Steps},
	}
}

// PreferencesOf returns the part of b for better sets, or nil if b is nil.
func PreferencesOf(b *Attempt) *Attempt {
	if b == nil {
		return nil
	}
	return b.preferences
}

// Cost returns the cost charged so far, in CEL cost units.
func (b *Attempt) Cost() uint64 { return b.cost.Load() }

// Steps returns the number of steps charged so far.
func (b *Attempt) Steps() int64 { return b.steps.Load() }

// End makes all current and later searches of the attempt fail with an error that wraps err. Only the first call has an effect.
func (b *Attempt) End(err error) {
	b.end.CompareAndSwap(nil, &err)
	b.preferences.end.CompareAndSwap(nil, &err)
}

// ended returns the error passed to End, or nil.
func (b *Attempt) ended() error {
	if b == nil {
		return nil
	}
	if err := b.end.Load(); err != nil {
		return fmt.Errorf("filter operation aborted: %w", *err)
	}
	return nil
}

// Work counts the steps and the cost of one search, and compares them with the limits of the search and of the attempt.
type Work struct {
	Ctx context.Context
	// Steps is the number of steps of the search. Cost counts the cost of evaluations.
	Steps int64
	Cost  *cel.Budget
	// StepLimit limits the steps of this search. Attempt is the budget shared with the other searches of the attempt, or nil.
	StepLimit int64
	Attempt   *Attempt
	// charged is the work that this search has already charged to the attempt.
	charged struct {
		steps int64
		cost  uint64
	}
}

// Limit describes a budget that is exhausted.
type Limit struct {
	Unit    Unit
	Value   uint64
	attempt bool
}

// Cancelled returns an error if the context or the attempt has ended. It is called before all expensive work, because a single
// step may evaluate expressions for many devices.
func (w *Work) Cancelled() error {
	if w.Ctx.Err() == nil {
		return w.Attempt.ended()
	}
	return fmt.Errorf("filter operation aborted: %w", cel.ContextError(w.Ctx))
}

// Exceeded returns the exhausted budget, or nil. It charges the attempt if a batch is full. It also charges the attempt before
// the first step, so that no search begins after the attempt's budget is exhausted.
func (w *Work) Exceeded() *Limit {
	switch {
	case w.Steps > w.StepLimit:
		return &Limit{Unit: Steps, Value: uint64(max(0, w.StepLimit))}
	case w.Attempt == nil,
		w.Steps > 1 && w.Steps-w.charged.steps < attemptStepBatch && w.Cost.Spent()-w.charged.cost < attemptCostBatch:
		return nil
	}
	w.Charge()
	switch {
	case w.Attempt.cost.Load() > w.Attempt.costLimit:
		return &Limit{Cost, w.Attempt.costLimit, true}
	case w.Attempt.steps.Load() > w.Attempt.stepLimit:
		return &Limit{Steps, uint64(max(0, w.Attempt.stepLimit)), true}
	default:
		return nil
	}
}

// Charge charges the attempt for the work since the last call.
func (w *Work) Charge() {
	if w.Attempt == nil {
		return
	}
	steps, cost := w.Steps, w.Cost.Spent()
	w.Attempt.steps.Add(steps - w.charged.steps)
	w.Attempt.cost.Add(cost - w.charged.cost)
	w.charged.steps, w.charged.cost = steps, cost
}

// The search tries the sets of a constraint in lexicographic order: devices of the first request change slowest, and within a
// request the first device changes slowest. So the current position determines the number of sets before it, although the
// search skipped most of them without counting them.
//
// Take a request for k of n free devices. The search has taken the devices at indices c0 < c1 < ... for it. A set comes before
// this position if one of its devices is smaller and all devices before that device are the same. For c0, these are the sets of
// k out of n devices, without the sets of k out of the n - c0 devices from c0 on. For c1, these are the sets of k-1 out of the
// n - c0 - 1 devices after c0, without the sets of k-1 out of the n - c1 devices from c1 on, and so forth.
//
// Example: the request is for 2 of 4 devices, and the search is at {1, 2}. C(4,2) - C(3,2) = 3 sets begin with 0 and come
// before {1, 2}. C(2,1) - C(2,1) = 0 sets begin with 1 and come before {1, 2}. Of 6 sets, {1, 2}, {1, 3} and {2, 3} are left.

// Combination describes the devices of one request in the sets of a constraint.
type Combination struct {
	// Free is the number of devices that the request can choose from. Count is the number of devices that it needs.
	Free, Count int
	// Chosen holds the devices taken so far, as ascending indices of free devices. It has at most Count entries.
	Chosen []int
}

// sets returns the number of ways to choose devices for the request.
func (c Combination) sets() *big.Int { return binomial(c.Free, c.Count) }

// preceding returns the number of ways to choose devices that the search tries before all ways with the chosen devices.
func (c Combination) preceding() *big.Int {
	sum, from := new(big.Int), 0
	for i, index := range c.Chosen {
		sum.Add(sum, binomial(c.Free-from, c.Count-i))
		sum.Sub(sum, binomial(c.Free-index, c.Count-i))
		from = index + 1
	}
	return sum
}

func binomial(n, k int) *big.Int { return new(big.Int).Binomial(int64(n), int64(k)) }

// Undecided returns the number of sets from the search's position on, including the current set. all counts all sets.
func Undecided(combinations []Combination) (left, all *big.Int) {
	behind, all := new(big.Int), big.NewInt(1)
	for _, c := range slices.Backward(combinations) {
		behind.Add(behind, new(big.Int).Mul(c.preceding(), all))
		all.Mul(all, c.sets())
	}
	return new(big.Int).Sub(all, behind), all
}
