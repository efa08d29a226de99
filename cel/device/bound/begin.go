// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"context"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bitset"
)

// begin prepares for looking at a partial set. It is false if nothing can be told.
func (s *state) begin(p Partial) bool {
	s.Partial, s.work, s.aborted, s.fixpoint = p, 0, false, -1
	if p.AtFixpoint {
		s.fixpoint = s.devices()
	}
	return s.problem.usable && !s.exhausted && s.err == nil && !s.mayAbort()
}

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

// start begins a search. What CEL has to be asked for is interrupted by ctx and charged to the budget.
func (s *state) start(ctx context.Context, budget *cel.Budget, p *problem, t *tables) {
	sets := bitset.NewList(2+len(s.lent.sets), len(t.devices))
	for i := range s.lent.sets {
		s.lent.sets[i] = sets.At(2 + i)
	}
	s.before, s.forced, s.spare = sets.At(0), sets.At(1), s.lent.sets[:]
	s.slots = s.lent.slots[:]
	if p.slots > len(s.slots) {
		s.slots = make([]int, p.slots)
	}
	s.search = search{problem: p, tables: t, conjuncts: p.conjuncts, ctx: ctx, budget: budget}
}
