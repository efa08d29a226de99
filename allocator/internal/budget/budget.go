// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget limits the work of searches. A search may have too many sets to try, and the bounds don't always help. Two
// limits end such a search: the cost of all evaluations, counted by [cel.Budget], and the steps, for a search that evaluates
// little. Because work is limited and not time, the same input has the same result on slow and fast machines. The deadline of the
// context is the last resort.
//
// A search counts its [Work]. All searches of one attempt to place a pod share an [Attempt]. An [Error] holds the number of
// undecided sets.
//
// Searches without CEL constraints have no budget, because they must behave like upstream's searches, which only have the
// context.
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

// Budget limits the work of one attempt to place a pod, for the searches on all nodes together. A search on one node,
// and searches for better sets, get fixed parts of it:
//
//	                             cost    steps
//	all nodes                       1        1
//	one node                      1/2      1/2
//	better sets, all nodes        1/5     1/10
//	better sets, one node        1/10    1/100
//
// Two nodes may be searched at the same time, so each gets half. A pod that looks for a better set already has a set, and other
// pods wait, so the part for better sets is small. It is enough to evaluate an expression on every set of four of 16 devices.
type Budget struct {
	// Cost is the cost of evaluations, in CEL cost units.
	Cost uint64
	// Steps is the number of steps, as in the statistics of an allocator.
	Steps int64
}

// Default returns the default budget in the plugin's arguments.
func Default() Budget {
	return Budget{Cost: uint64(configv1alpha1.DefaultBudgetCost), Steps: configv1alpha1.DefaultBudgetSteps}
}

// OnNode returns the part of the budget for one node.
func OnNode(b Budget) Budget {
	return Budget{Cost: max(1, b.Cost/2), Steps: max(1, b.Steps/2)}
}

// preferencesOf returns the part for better sets on all nodes.
func preferencesOf(b Budget) Budget { return Budget{Cost: b.Cost / 5, Steps: b.Steps / 10} }

// PreferencesOnNode returns the part for better sets on one node.
func PreferencesOnNode(b Budget) Budget { return Budget{Cost: b.Cost / 10, Steps: b.Steps / 100} }

// Unit is the unit of a limit.
type Unit string

const (
	// Cost is the cost of evaluations, in CEL cost units.
	Cost Unit = "CEL cost units"
	// Steps is the number of steps of the search.
	Steps Unit = "steps"
)

// Error is the error of an Allocate call that exhausted a budget before it had an answer. It concerns the claim, not the node,
// because the search would be as long on other nodes. Nothing was allocated.
type Error struct {
	// Claim is the claim with the constraint.
	Claim types.NamespacedName
	// Constraint is the name of the CEL constraint that the search was working on.
	Constraint string
	// Node is the name of the node.
	Node string
	// Unit and Limit are the exhausted budget.
	Unit  Unit
	Limit uint64
	// Attempt is true for the budget of all nodes together.
	Attempt bool
	// SetsLeft is the number of undecided sets for the constraint on the node, Sets the number of all sets. Both assume the last
	// tried alternatives, and the last tried devices of requests without the constraint. Requests are counted independently, so sets
	// that contain a device twice are included.
	SetsLeft, Sets *big.Int

	err error
}

// NewError returns the error for a claim that exhausted a budget on a node. cause is the error of the evaluation that exceeded
// the cost, or nil if the steps were exceeded.
func NewError(of Limit, claim *resourceapi.ResourceClaim, node string, cause error) *Error {
	return &Error{
		Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, Node: node,
		Unit: of.Unit, Limit: of.Value, Attempt: of.attempt, SetsLeft: new(big.Int), Sets: new(big.Int), err: cause,
	}
}

// Error returns a message with a remedy.
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

// Unwrap returns the [*cel.Error] of the evaluation that exceeded the budget, or nil.
func (e *Error) Unwrap() error { return e.err }

// IsExceeded reports whether an evaluation exceeded the cost budget of the search.
func IsExceeded(err error) bool {
	failure, ok := errors.AsType[*cel.Error](err)
	return ok && failure.Reason == cel.ReasonBudget
}

// The limits of an Allocate call are for one node. A scheduler tries thousands of nodes in one attempt to place a pod. If the
// search on each node stayed just below the limits, the attempt would last for minutes. So all Allocate calls of one attempt
// share a budget as well.

// A search charges the attempt in batches of steps or cost, so that concurrent searches don't contend for the counters. Each
// search exceeds the budget by at most one batch and one evaluation.
const (
	attemptStepBatch = 256
	attemptCostBatch = 20_000
)

// Attempt is the budget of all Allocate calls of one attempt to place a pod, on any nodes and concurrently. It is safe for
// concurrent use.
//
// Whether an attempt fails depends on the nodes visited and on cached results. It does not depend on the order of searches,
// because only the sum counts.
type Attempt struct {
	costLimit uint64
	stepLimit int64
	cost      atomic.Uint64
	steps     atomic.Int64
	end       atomic.Pointer[error]
	// preferences is a separate budget for finding better sets.
	preferences *Attempt
}

// NewAttempt returns an unused budget for an attempt.
func NewAttempt(budget Budget) *Attempt {
	return NewSeparate(budget, preferencesOf(budget))
}

// NewSeparate returns an unused budget. Searches for better sets use preferences, all other searches use budget. It is for
// reports and groups of pods, which are not attempts for one pod and choose both limits.
func NewSeparate(budget, preferences Budget) *Attempt {
	return &Attempt{
		costLimit: budget.Cost, stepLimit: budget.Steps,
		preferences: &Attempt{costLimit: preferences.Cost, stepLimit: preferences.Steps},
	}
}

// PreferencesOf returns the budget for better sets, or nil if b is nil.
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

// End ends all searches of the attempt, including running ones, with or without CEL constraints. Their errors wrap err. Only the
// first call has an effect.
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
	// Steps is the number of times that the search looked for a device. Cost counts the cost of evaluations.
	Steps int64
	Cost  *cel.Budget
	// StepLimit is the limit of this search. Attempt is shared with the other searches of an attempt, and may be nil.
	StepLimit int64
	Attempt   *Attempt
	// charged is the part that the attempt has been charged.
	charged struct {
		steps int64
		cost  uint64
	}
}

// Limit is an exhausted budget.
type Limit struct {
	Unit    Unit
	Value   uint64
	attempt bool
}

// Cancelled returns an error if the context or the attempt ended. It is called before all expensive work, since a step may
// evaluate expressions on many devices.
func (w *Work) Cancelled() error {
	if w.Ctx.Err() == nil {
		return w.Attempt.ended()
	}
	return fmt.Errorf("filter operation aborted: %w", cel.ContextError(w.Ctx))
}

// Exceeded returns the exhausted budget, or nil. It charges the attempt if a batch is full. It also does so before the first
// step, so that no search begins after the budget is exhausted.
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

// Charge charges the attempt for the work since the last charge.
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
// request the first device does. So the current position determines the number of sets before it, although most sets were skipped
// and never counted.
//
// Take a request for k of n free devices, with devices at indices c0 < c1 < ... taken so far. A set comes before this position if
// it has a smaller device in one place and the same devices in all places before. For c0, these are the sets of k out of n
// devices, without the sets of k out of the n - c0 devices from c0 on. For c1, these are the sets of k-1 out of the n - c0 - 1
// devices after c0, without the sets of k-1 out of the n - c1 devices from c1 on, and so forth.
//
// Example: 2 of 4, with the search at {1, 2}. Before it are C(4,2) - C(3,2) = 3 sets with 0 as the first device and C(2,1) -
// C(2,1) = 0 with 1 as the first, out of 6. {1, 2}, {1, 3} and {2, 3} are left.

// Combination is the part of one request in a set of a constraint.
type Combination struct {
	// Free is the number of devices that the request can choose from. Count is the number that it needs.
	Free, Count int
	// Chosen holds the devices taken so far, as ascending indices of free devices, at most Count.
	Chosen []int
}

// sets returns the number of ways to meet the request.
func (c Combination) sets() *big.Int { return binomial(c.Free, c.Count) }

// preceding returns the number of ways to meet the request that precede the first way with the chosen devices, in the order of the
// search.
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

// Undecided returns the number of sets from the current position on, including the current set, and the number of all sets.
func Undecided(combinations []Combination) (left, all *big.Int) {
	behind, all := new(big.Int), big.NewInt(1)
	for _, c := range slices.Backward(combinations) {
		behind.Add(behind, new(big.Int).Mul(c.preceding(), all))
		all.Mul(all, c.sets())
	}
	return new(big.Int).Sub(all, behind), all
}
