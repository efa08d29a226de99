// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"math"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bound/outcome"
)

// Tables are what an expression says of the given devices, one by one and in pairs.
// They are filled as they are needed, each entry once, and never change after that:
// any number of searches may use them at the same time, each through its own
// [Bounds].
type Tables struct {
	tables
	problem *problem
}

// Size is about how many bytes of memory the tables take before they are filled, without the
// analysis and the devices. What they take later is said to Grown.
func (t *Tables) Size() int { return t.size() }

// Bounds tell what an expression can become for partial sets of the devices that
// were tabulated. They must not be used concurrently, the tables may.
type Bounds struct{ state state }

// NewBounds returns bounds for one search. What CEL has to be asked for on the way
// is interrupted by ctx and charged to the budget.
func (t *Tables) NewBounds(ctx context.Context, budget *cel.Budget) *Bounds {
	b := &Bounds{}
	b.state.start(ctx, budget, t.problem, &t.tables)
	return b
}

// Evaluations counts how often CEL was asked for an entry of a table by these bounds,
// and Builds how many tables they began. What the tables had already counts for
// whoever asked first.
func (b *Bounds) Evaluations() int64 { return b.state.evaluations }

// Builds counts the tables that these bounds began.
func (b *Bounds) Builds() int64 { return b.state.builds }

// MayProve reports whether there may be a complete set of which Bound says that it is surely
// true: there is none if a conjunct is open.
func (b *Bounds) MayProve() bool { return b.state.problem.provable }

// Err returns why CEL could not be asked, nil if it could: the context has ended or
// the budget is used up.
func (b *Bounds) Err() error { return b.state.err }

// Exhausted tells that the expression is too expensive to have bounds. Nothing is
// looked at any more then.
func (b *Bounds) Exhausted() bool { return b.state.exhausted }

// Bound returns what the expression may become.
func (b *Bounds) Bound(p Partial) outcome.Outcome {
	s := &b.state
	if !s.begin(p) {
		return outcome.Open
	}
	result := outcome.True
	for _, c := range s.conjuncts {
		result = result.And(c.bound(s))
	}
	if !s.isSound() {
		return outcome.Open
	}
	return result
}

// Infeasible reports whether no completion satisfies the expression and none makes it
// fail. It removes devices from p.Domain that are in no other completions, and
// enters those into p.Forced that are in all of them.
func (b *Bounds) Infeasible(p Partial, effort Effort) bool { return b.state.infeasible(p, effort) }

// Exceed has sets satisfy the condition that their value is above the given one, in place of what
// Exceed was told before. The bounds are of an analysis of [AnalyzeGoal].
func (b *Bounds) Exceed(value int64) {
	b.state.conjuncts = []condition{b.state.problem.above(value)}
}

// Most returns what the value of no completion exceeds, and [math.MaxInt64] if that is not known. The bounds
// are of an analysis of [AnalyzeGoal].
func (b *Bounds) Most(p Partial) int64 {
	s := &b.state
	if !s.begin(p) {
		return math.MaxInt64
	}
	n := s.problem.goal.number(s)
	if n.Open || !s.isSound() {
		return math.MaxInt64
	}
	return n.Most
}
