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

// Tables are what an expression says of the given devices, one by one and in pairs.
// They are filled as they are needed, each entry once, and never change after that:
// any number of searches may use them at the same time, each through its own
// [Bounds].
type Tables struct {
	propagate.Tables
	problem *propagate.Problem
}

// Bounds tell what an expression can become for partial sets of the devices that
// were tabulated. They must not be used concurrently, the tables may.
type Bounds struct{ state propagate.State }

// NewBounds returns bounds for one search. What CEL has to be asked for on the way
// is interrupted by ctx and charged to the budget.
func (t *Tables) NewBounds(ctx context.Context, budget *cel.Budget) *Bounds {
	b := &Bounds{}
	b.state.Start(ctx, budget, t.problem, &t.Tables)
	return b
}

// Evaluations counts how often CEL was asked for an entry of a table by these bounds,
// and Builds how many tables they began. What the tables had already counts for
// whoever asked first.
func (b *Bounds) Evaluations() int64 { return b.state.Evaluations }

// Builds counts the tables that these bounds began.
func (b *Bounds) Builds() int64 { return b.state.Builds }

// MayProve reports whether there may be a complete set of which Bound says that it is surely
// true: there is none if a conjunct is open.
func (b *Bounds) MayProve() bool { return b.state.Problem.Provable }

// Err returns why CEL could not be asked, nil if it could: the context has ended or
// the budget is used up.
func (b *Bounds) Err() error { return b.state.Err }

// Exhausted tells that the expression is too expensive to have bounds. Nothing is
// looked at any more then.
func (b *Bounds) Exhausted() bool { return b.state.Exhausted }

// Bound returns what the expression may become.
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

// Infeasible reports whether no completion satisfies the expression and none makes it
// fail. It removes devices from p.Domain that are in no other completions, and
// enters those into p.Forced that are in all of them.
func (b *Bounds) Infeasible(p propagate.Partial, effort propagate.Effort) bool {
	return b.state.Infeasible(p, effort)
}

// Exceed has sets satisfy the condition that their value is above the given one, in place of what
// Exceed was told before. The bounds are of an analysis of [AnalyzeGoal].
func (b *Bounds) Exceed(value int64) {
	b.state.Conjuncts = []propagate.Condition{b.state.Problem.Above(value)}
}

// Most returns what the value of no completion exceeds, and [math.MaxInt64] if that is not known. The bounds
// are of an analysis of [AnalyzeGoal].
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
