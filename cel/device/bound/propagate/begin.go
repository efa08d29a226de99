// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"context"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/bitset"
)

// Begin sets the partial set for one call of Bound, Infeasible or Most. It returns false if the set has no valid bounds.
func (s *State) Begin(p Partial) bool {
	s.Partial, s.work, s.aborted, s.fixpoint = p, 0, false, -1
	if p.AtFixpoint {
		s.fixpoint = s.devices()
	}
	return s.Problem.Usable && !s.Exhausted && s.Err == nil && !s.mayAbort()
}

// mayAbort reports whether the leaf of a guard misbehaves for a chosen or possible device, or a leaf could not be evaluated.
func (s *State) mayAbort() bool {
	for _, g := range s.Problem.Guards {
		c := s.Column(g.Leaf)
		if c == nil || c.Misbehaviour[g.Against].Meets(s.Chosen) || c.Misbehaviour[g.Against].Meets(s.Domain) {
			return true
		}
	}
	return s.aborted || s.Err != nil
}

// Start begins a search. Calls of CEL stop when ctx ends, and their cost is charged to the budget.
func (s *State) Start(ctx context.Context, budget *cel.Budget, p *Problem, t *Tables) {
	sets := bitset.NewList(2+len(s.initial.sets), len(t.devices))
	for i := range s.initial.sets {
		s.initial.sets[i] = sets.At(2 + i)
	}
	s.before, s.forced, s.spare = sets.At(0), sets.At(1), s.initial.sets[:]
	s.Slots = s.initial.slots[:]
	if p.Slots > len(s.Slots) {
		s.Slots = make([]int, p.Slots)
	}
	s.search = search{Problem: p, tables: t, Conjuncts: p.Conjuncts, ctx: ctx, budget: budget}
}
