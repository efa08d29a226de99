// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"context"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bitset"
)

// Begin prepares for looking at a partial set. It is false if nothing can be told.
func (s *State) Begin(p Partial) bool {
	s.Partial, s.work, s.aborted, s.fixpoint = p, 0, false, -1
	if p.AtFixpoint {
		s.fixpoint = s.devices()
	}
	return s.Problem.Usable && !s.Exhausted && s.Err == nil && !s.mayAbort()
}

// mayAbort reports whether a leaf misbehaves that guards something, for a device that is
// or may come into the set.
func (s *State) mayAbort() bool {
	for _, g := range s.Problem.Guards {
		c := s.Column(g.Leaf)
		if c == nil || c.Misbehaviour[g.Against].Meets(s.Chosen) || c.Misbehaviour[g.Against].Meets(s.Domain) {
			return true
		}
	}
	return s.aborted || s.Err != nil
}

// Start begins a search. What CEL has to be asked for is interrupted by ctx and charged to the budget.
func (s *State) Start(ctx context.Context, budget *cel.Budget, p *Problem, t *Tables) {
	sets := bitset.NewList(2+len(s.lent.sets), len(t.devices))
	for i := range s.lent.sets {
		s.lent.sets[i] = sets.At(2 + i)
	}
	s.before, s.forced, s.spare = sets.At(0), sets.At(1), s.lent.sets[:]
	s.Slots = s.lent.slots[:]
	if p.Slots > len(s.Slots) {
		s.Slots = make([]int, p.Slots)
	}
	s.search = search{Problem: p, tables: t, Conjuncts: p.Conjuncts, ctx: ctx, budget: budget}
}
