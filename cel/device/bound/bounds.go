// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"math"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bound/outcome"
	"github.com/celset/celset/cel/device/bound/propagate"
)

// Tables hold the values of an expression's parts for the given devices and their pairs. Each entry is computed once, on
// demand, and never changes. Several searches may use the tables concurrently, each with its own [Bounds].
type Tables struct {
	propagate.Tables
	problem *propagate.Problem
}

// Bounds compute the possible results of an expression for partial sets of the tabulated devices. A Bounds must not be used
// concurrently, but several Bounds may share the tables.
type Bounds struct{ state propagate.State }

// NewBounds returns bounds for one search. Calls of CEL stop when ctx ends, and their cost is charged to the budget.
func (t *Tables) NewBounds(ctx context.Context, budget *cel.Budget) *Bounds {
	b := &Bounds{}
	b.state.Start(ctx, budget, t.problem, &t.Tables)
	return b
}

// Evaluations returns the number of calls of CEL that these bounds made, without entries that other bounds computed.
func (b *Bounds) Evaluations() int64 { return b.state.Evaluations }

// Builds returns the number of tables that these bounds started.
func (b *Bounds) Builds() int64 { return b.state.Builds }

// MayProve reports whether Bound can return True for a complete set. If a conjunct is open, Bound can't.
func (b *Bounds) MayProve() bool { return b.state.Problem.Provable }

// Err returns the reason why CEL could not be called: the context has ended or the budget is used up. Otherwise it returns nil.
func (b *Bounds) Err() error { return b.state.Err }

// Exhausted reports whether a call exceeded its work, the tables exceeded their memory, or the context has ended. All later
// results are open.
func (b *Bounds) Exhausted() bool { return b.state.Exhausted }

// Bound returns a set of results that includes the expression's result for every completion of p.
func (b *Bounds) Bound(p propagate.Partial) outcome.Outcome {
	s := &b.state
	if !s.Begin(p) {
		return outcome.Open
	}
	result := outcome.True
	for _, c := range s.Conjuncts {
		result = result.And(c.Bound(s))
	}
	if !s.IsSound() {
		return outcome.Open
	}
	return result
}

// Infeasible reports whether all completions are false. If not, it removes a device from p.Domain if every completion with it
// is false, and adds a device to p.Forced if all other completions contain it.
func (b *Bounds) Infeasible(p propagate.Partial, effort propagate.Effort) bool {
	return b.state.Infeasible(p, effort)
}

// Divide says that every complete set has a fixed number of devices of each part. The parts are disjoint, and apply to all later
// calls.
func (b *Bounds) Divide(parts []propagate.Part) { b.state.Divide(parts) }

// Exceed requires that the value of a set exceeds the given value. It replaces earlier values. The analysis must be from
// [AnalyzeGoal].
func (b *Bounds) Exceed(value int64) {
	b.state.Conjuncts = []propagate.Condition{b.state.Problem.Above(value)}
}

// Most returns an upper bound for the preference's value in all completions, or [math.MaxInt64] if there is no bound. The
// analysis must be from [AnalyzeGoal].
func (b *Bounds) Most(p propagate.Partial) int64 {
	s := &b.state
	if !s.Begin(p) {
		return math.MaxInt64
	}
	n := s.Problem.Goal.Number(s)
	if n.Open || !s.IsSound() {
		return math.MaxInt64
	}
	return n.Most
}
