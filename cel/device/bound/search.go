// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
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

// tabulate prepares the tables for the given devices. CEL is asked later.
func (p *problem) tabulate(devices []*device.Device) *Tables {
	t := &Tables{problem: p, tables: tables{
		devices:    devices,
		leaves:     make([]leafTable, len(p.leaves)),
		predicates: make([]predicateTable, len(p.predicates)),
		derived:    make([]atomic.Value, p.derivations),
	}}
	for i := range p.predicates {
		t.predicates[i].init(&p.predicates[i], len(devices))
	}
	return t
}

// Size is about how many bytes of memory the tables take before they are filled, without the
// analysis and the devices. What they take later is said to Grown.
func (t *Tables) Size() int {
	bytes := int(unsafe.Sizeof(*t)) + len(t.leaves)*int(unsafe.Sizeof(leafTable{})) + len(t.derived)*int(unsafe.Sizeof(atomic.Value{}))
	for i := range t.predicates {
		bytes += t.predicates[i].size()
	}
	return bytes
}

// Bounds tell what an expression can become for partial sets of the devices that
// were tabulated. They must not be used concurrently, the tables may.
type Bounds struct {
	state state
	// before is memory for one call after the other.
	before bitset.Set
	// lent is memory that the state borrows, as much as most conditions do.
	lent struct {
		sets  [4]bitset.Set
		slots [4]int
	}
}

// NewBounds returns bounds for one search. What CEL has to be asked for on the way
// is interrupted by ctx and charged to the budget.
func (t *Tables) NewBounds(ctx context.Context, budget *cel.Budget) *Bounds {
	b := &Bounds{}
	sets := bitset.NewList(2+len(b.lent.sets), len(t.devices))
	for i := range b.lent.sets {
		b.lent.sets[i] = sets.At(2 + i)
	}
	slots := b.lent.slots[:]
	if t.problem.slots > len(slots) {
		slots = make([]int, t.problem.slots)
	}
	b.before = sets.At(0)
	b.state.search = search{problem: t.problem, tables: &t.tables, conjuncts: t.problem.conjuncts, ctx: ctx, budget: budget}
	b.state.slots, b.state.forced, b.state.spare = slots, sets.At(1), b.lent.sets[:]
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
func (b *Bounds) Infeasible(p Partial, effort Effort) bool {
	if p.Forced != nil {
		p.Forced.Clear()
	}
	s := &b.state
	if !s.begin(p) {
		return false
	}
	b.before.SetTo(p.Domain)
	s.forced.Clear()
	infeasible := !s.propagateAll(effort)
	// What was forced was chosen to find out more. It is the caller's to choose it.
	p.Chosen.Drop(s.forced)
	p.Domain.Join(s.forced)
	if !s.isSound() {
		p.Domain.SetTo(b.before)
		return false
	}
	if !infeasible && p.Forced != nil {
		p.Forced.SetTo(s.forced)
		if s.Domain.Count() == p.Left {
			p.Forced.SetTo(p.Domain)
		}
	}
	return infeasible
}

// begin prepares for looking at a partial set. It is false if nothing can be told.
func (s *state) begin(p Partial) bool {
	s.Partial, s.work, s.aborted, s.fixpoint = p, 0, false, -1
	if p.AtFixpoint {
		s.fixpoint = s.devices()
	}
	return s.problem.usable && !s.exhausted && s.err == nil && !s.mayAbort()
}

// isSound reports whether what was found since begin can be relied on.
func (s *state) isSound() bool { return !s.aborted && !s.exhausted && s.err == nil }

// mayAbort reports whether a leaf misbehaves that guards something, for a device that is
// or may come into the set.
func (s *state) mayAbort() bool {
	for _, g := range s.problem.guards {
		c := s.column(g.leaf)
		if c == nil || c.misbehaviour[g.against].Meets(s.Chosen) || c.misbehaviour[g.against].Meets(s.Domain) {
			return true
		}
	}
	return s.aborted || s.err != nil
}

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
