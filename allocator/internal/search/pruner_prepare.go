// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"iter"
	"slices"

	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// isPrepared prepares the pruner at the first call and reports whether the pruner can cut anything. The eligible devices and
// the bounds are then valid for the whole search. The pruner cuts nothing if another evaluation before the set is complete may
// fail.
func (p *pruner) isPrepared() bool {
	if p.bounds == nil && !p.useless {
		p.useless = p.search.Planner.Unbounded || !p.prepare()
	}
	return !p.useless
}

// newPruner returns a pruner for sets that begin with the alternative first of the first covered request.
func newPruner(c *CELConstraint, first *Request) *pruner {
	p := &pruner{constraint: c, search: c.search, first: first, useless: !slices.Contains(c.covered[0], first)}
	p.covered = append(p.covered, first)
	for _, all := range c.covered[1:] {
		p.covered = append(p.covered, all[0])
	}
	return p
}

// prepare computes the bounds and the eligible devices. It returns false if the pruner can never cut anything.
func (p *pruner) prepare() bool {
	c := p.constraint
	span, ok := p.span()
	if !ok || !p.search.withinLimit(p.search.Requests[p.constraint.claimIndex]) {
		return false
	}
	for _, r := range p.covered {
		p.size += r.Count
	}
	if p.size == 0 {
		return false
	}
	bounds := p.search.boundsOf(c.Definition, definition.SetShape{Size: p.size, Ascending: len(p.covered) == 1})
	if bounds == nil || !p.search.lookahead.evaluateAhead(span...) {
		return false
	}
	p.allocateSets()
	p.findEligible()
	if p.mayRepeat() {
		return false
	}
	p.bounds = bounds
	p.divide()
	if c.Goal != nil {
		p.raise()
	}
	return true
}

// divide tells the bounds how many devices of each request a complete set contains, if no device is eligible for two requests.
func (p *pruner) divide() {
	if len(p.covered) == 1 {
		return
	}
	parts := make([]bound.Part, len(p.covered))
	for i, r := range p.covered {
		if r.WantsAll() || i > 0 && p.eligible.At(i-1).Meets(p.later.At(i-1)) {
			return
		}
		parts[i] = bound.Part{Of: p.eligible.At(i), Count: r.Count}
	}
	p.bounds.Divide(parts)
}

// mayRepeat reports whether a set may contain a device twice, because two covered requests can share it. Sets of bits can't
// express that.
func (p *pruner) mayRepeat() bool {
	if len(p.covered) == 1 || !p.search.Inventory.HasShared {
		return false
	}
	for i := range p.covered {
		for position := range p.eligible.At(i).All() {
			if p.later.At(i).Has(position) && p.search.Inventory.Candidates[position].Shared {
				return true
			}
		}
	}
	return false
}

// allocateSets allocates the sets for all levels of the search.
func (p *pruner) allocateSets() {
	c := p.constraint
	requests, levels := len(p.covered), p.size+1
	sets := bitset.NewList(2+2*requests+2*levels, len(p.search.Inventory.Candidates))
	cut := func(count int) (part bitset.List) {
		part, sets = sets.Cut(count)
		return part
	}
	p.chosen, p.empty = cut(1).At(0), cut(1).At(0)
	p.eligible, p.later = cut(requests), cut(requests)
	p.domain, p.forced = cut(levels), cut(levels)
	p.fixpoint = make([]bool, levels)
	c.members = slices.Grow(c.members, p.size)
}

// findEligible fills eligible and later for all covered requests.
func (p *pruner) findEligible() {
	c := p.constraint
	for i, r := range p.covered {
		dependent := p.findEligibleFor(r, p.eligible.At(i))
		p.volatile = p.volatile || dependent || r.otherConstraints() > 1 || r.AdminAccess()
	}
	p.volatile = p.volatile || c.last-c.first+1 > len(p.covered)
	for i := len(p.covered) - 1; i > 0; i-- {
		p.later.At(i - 1).SetTo(p.later.At(i))
		p.later.At(i - 1).Join(p.eligible.At(i))
	}
}

// span returns the requests of the claim from the first covered request to the last. The search handles all of them before the
// set is complete. ok is false if a request after the first has alternatives, because the alternative is not known in advance.
func (p *pruner) span() ([]*Request, bool) {
	c := p.constraint
	span := []*Request{p.first}
	for _, all := range p.search.Requests[p.constraint.claimIndex][c.first+1 : c.last+1] {
		if len(all) != 1 {
			return nil, false
		}
		span = append(span, all[0])
	}
	return span, true
}

// boundsOf returns the bounds of an expression for complete sets of the given shape. It returns nil if package bound can't
// analyze the expression, if the cost of evaluating a set may exceed the limit, or if the search was cancelled.
func (s *Search) boundsOf(d *definition.Definition, shape definition.SetShape) *bound.Bounds {
	if s.Ctx.Err() != nil {
		return nil
	}
	tables := s.TablesOf(d, shape)
	if tables == nil {
		return nil
	}
	return tables.NewBounds(s.Ctx, s.Work.Cost)
}

// findEligibleFor fills the set to with the devices that the request can get if the search has taken no device. volatile is
// true if another device that the search takes may make one of these devices unavailable.
func (p *pruner) findEligibleFor(r *Request, to bitset.Set) (volatile bool) {
	s := p.search
	to.SetTo(r.group.selectors.Passed())
	if !r.AdminAccess() {
		to.Drop(s.Available.Allocated())
	}
	if to.IsWithin(s.Inventory.Ordinary) {
		return false
	}
	for position := range to.All() {
		c := p.search.Inventory.Candidates[position]
		if !s.Available.IsUsable(&r.Request, c) {
			to.Remove(position)
		} else if c.Shared || len(c.Device.ConsumesCounters) > 0 || len(c.Device.Capacity) > 0 {
			volatile = true
		}
	}
	return volatile
}

// joinFree adds the eligible devices that r can get now to the set to.
func (p *pruner) joinFree(to, eligible bitset.Set, r *Request) {
	taken := p.search.Available.Taken()
	for w, word := range eligible {
		to[w] |= word &^ taken[w]
	}
	if !r.AdminAccess() {
		return
	}
	for position := range eligible.All() {
		if !p.search.Available.InUse(p.constraint.claimIndex, &r.Request, p.search.Inventory.Candidates[position]) {
			to.Add(position)
		}
	}
}

// mayTakeFor reports whether the request can still get the device. For allocationMode All it ignores the capacity of the
// device, because the search then calls the constraint before it checks the capacity.
func (p *pruner) mayTakeFor(r *Request, c *inventory.Candidate) bool {
	return !p.search.Available.InUse(p.constraint.claimIndex, &r.Request, c) &&
		(r.WantsAll() || p.search.lookahead.eligibilityOf(r, c) != ineligible) && r.isAdmitted(c)
}

// others yields the CEL constraints of the claim that may be evaluated between the requests with the indices from and to. It
// skips the constraint than, and constraints that are evaluated only after than has accepted a set.
func (p *pruner) others(than *CELConstraint, from, to int) iter.Seq[*CELConstraint] {
	return func(yield func(*CELConstraint) bool) {
		behind := false
		for _, o := range p.search.celConstraints {
			if o == than {
				behind = true
				continue
			}
			if o.claimIndex != p.constraint.claimIndex || o.last < from || o.first > to || o.isEvaluatedAfter(than, behind) {
				continue
			}
			if !yield(o) {
				return
			}
		}
	}
}
