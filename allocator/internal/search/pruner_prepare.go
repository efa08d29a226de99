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

// What pruning needs is prepared when the first covered request of a constraint is tried
// for the first time, and holds for the whole search: which devices are eligible as far
// as nothing plays a role that the search takes, and the bounds of the expression. There
// is no pruning at all if something on the way to a complete set may fail that only the
// search itself finds out.

func (p *pruner) isPrepared() bool {
	if p.bounds == nil && !p.useless {
		p.useless = p.search.Planner.Unbounded || !p.prepare()
	}
	return !p.useless
}

// newPruner is for sets with an alternative of the first covered request.
func newPruner(c *CELConstraint, first *Request) *pruner {
	p := &pruner{constraint: c, search: c.search, first: first, useless: !slices.Contains(c.Covered[0], first)}
	p.covered = append(p.covered, first)
	for _, all := range c.Covered[1:] {
		p.covered = append(p.covered, all[0])
	}
	return p
}

// prepare reads the expression. It is false if nothing can be cut, now and later.
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
	if bounds == nil || !p.search.Lookahead.speculate(span...) {
		return false
	}
	p.makeRoom()
	p.findEligible()
	if p.mayRepeat() {
		return false
	}
	p.bounds = bounds
	if c.Goal != nil {
		p.raise()
	}
	return true
}

// mayRepeat reports whether a device may be in the set twice: one of which several requests may have a
// part, for two of those covered. Sets of bits know nothing of that.
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

// makeRoom has memory for all levels of the search.
func (p *pruner) makeRoom() {
	c := p.constraint
	requests, levels := len(p.covered), p.size+1
	sets := bitset.NewList(2+2*requests+2*levels, len(p.search.Inventory.Candidates))
	cut := func(count int) (part bitset.List) {
		part, sets = sets.Cut(count)
		return part
	}
	p.Chosen, p.none = cut(1).At(0), cut(1).At(0)
	p.eligible, p.later = cut(requests), cut(requests)
	p.Domain, p.Forced = cut(levels), cut(levels)
	p.fixpoint = make([]bool, levels)
	c.Members = slices.Grow(c.Members, p.size)
}

// findEligible looks at the devices for each covered request.
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

// span are the requests of the claim from the first to the last that the
// constraint covers. What is between them is searched before a set is complete. It is false if
// one of them has alternatives and it is not known which is tried.
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

// boundsOf are those of an expression for complete sets of the given shape, and nil if it can't be
// read, or if sets may fail because of what they cost. When the search is over nothing more is read.
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

// findEligibleFor enters the devices that the request can have whatever the search takes. volatile: it
// also depends on that.
func (p *pruner) findEligibleFor(r *Request, to bitset.Set) (volatile bool) {
	s := p.search
	to.SetTo(r.Group.Selectors.Passed())
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

// joinFree adds those of the eligible devices that the request can have and that are not in use.
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

// mayTakeFor reports whether the device can still be had for the request. Where the search would look
// at the constraint before it finds out that too little of the device is left, as it does for
// "all", it counts as if it could.
func (p *pruner) mayTakeFor(r *Request, c *inventory.Candidate) bool {
	return !p.search.Available.InUse(p.constraint.claimIndex, &r.Request, c) &&
		(r.WantsAll() || p.search.Lookahead.know(r, c) != ineligible) && r.isAdmitted(c)
}

// others are the other CEL constraints of the claim that may be asked between two of its requests
// in a branch in which no set satisfies the given one.
func (p *pruner) others(than *CELConstraint, from, to int) iter.Seq[*CELConstraint] {
	return func(yield func(*CELConstraint) bool) {
		behind := false
		for _, o := range p.search.CELConstraints {
			if o == than {
				behind = true
				continue
			}
			if o.claimIndex != p.constraint.claimIndex || o.last < from || o.first > to || o.isAskedAfter(than, behind) {
				continue
			}
			if !yield(o) {
				return
			}
		}
	}
}
