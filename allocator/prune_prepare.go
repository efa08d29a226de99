// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
)

// What pruning needs is prepared when the first covered request of a constraint is tried
// for the first time, and holds for the whole search: which devices are eligible as far
// as nothing plays a role that the search takes, and the bounds of the expression. There
// is no pruning at all if something on the way to a complete set may fail that only the
// search itself finds out.

func (p *pruner) isPrepared() bool {
	c := p.constraint
	if p.bounds == nil && !p.useless {
		p.useless = c.search.allocator.unbounded || !p.prepare()
	}
	return !p.useless
}

// prepare reads the expression. It is false if nothing can be cut, now and later.
func (p *pruner) prepare() bool {
	c, s := p.constraint, p.constraint.search
	if !withinLimit(s.requests[c.claimIndex]) {
		return false
	}
	for _, all := range p.span() {
		if len(all) != 1 {
			return false
		}
	}
	for _, all := range c.covered {
		p.size += all[0].count
	}
	if p.size == 0 || len(c.covered) > 1 && s.inventory.HasShared {
		return false
	}
	tables := s.allocator.cache.tablesOf(s.view(), c.definition, p.size)
	if tables == nil {
		return false
	}
	for _, all := range p.span() {
		if !s.speculate(all[0]) {
			return false
		}
	}
	p.makeRoom()
	p.findEligible()
	p.bounds = tables.NewBounds(s.ctx, s.budget)
	return true
}

// makeRoom has memory for all levels of the search.
func (p *pruner) makeRoom() {
	c := p.constraint
	requests, levels := len(c.covered), p.size+1
	sets := bitset.NewList(2+2*requests+2*levels, len(c.search.inventory.Candidates))
	cut := func(count int) (part bitset.List) {
		part, sets = sets.Cut(count)
		return part
	}
	p.chosen, p.none = cut(1).At(0), cut(1).At(0)
	p.eligible, p.later = cut(requests), cut(requests)
	p.domain, p.forced = cut(levels), cut(levels)
	c.members = make([]*inventory.Candidate, 0, p.size)
}

// findEligible looks at the devices for each covered request.
func (p *pruner) findEligible() {
	c, s := p.constraint, p.constraint.search
	for i, all := range c.covered {
		r, eligible := all[0], p.eligible.At(i)
		eligible.SetTo(r.group.selections.passed)
		if !r.adminAccess() {
			eligible.Drop(s.available.allocated)
		}
		if !eligible.IsWithin(s.inventory.Ordinary) {
			for position := range eligible.All() {
				candidate := s.inventory.Candidates[position]
				if !s.isUsable(r, candidate) {
					eligible.Remove(position)
				} else if candidate.Shared || len(candidate.Device.ConsumesCounters) > 0 || len(candidate.Device.Capacity) > 0 {
					p.volatile = true
				}
			}
		}
		p.volatile = p.volatile || len(r.constraints) > 1 || r.adminAccess()
	}
	p.volatile = p.volatile || c.last-c.first+1 > len(c.covered)
	for i := len(c.covered) - 1; i > 0; i-- {
		p.later.At(i - 1).SetTo(p.later.At(i))
		p.later.At(i - 1).Join(p.eligible.At(i))
	}
}

// span are the requests of the claim from the first to the last that the
// constraint covers. What is between them is searched before a set is complete.
func (p *pruner) span() []alternatives {
	c := p.constraint
	return c.search.requests[c.claimIndex][c.first : c.last+1]
}

// speculate evaluates the selectors of a request for all devices that it may try.
// It is false if one of them fails, or if something else may that is evaluated only
// when the search comes to it.
func (s *search) speculate(r *request) bool {
	if len(r.derived) > 0 || r.wantsAll() && len(r.constraints) > len(r.decides) {
		return false
	}
	s.recall(r)
	for _, c := range s.inventory.Candidates {
		if r.isSimple(c) && r.group.selections.known.Has(c.Position) || !r.adminAccess() && s.available.allocated.Has(c.Position) {
			continue
		}
		if s.know(r, c) == unknown {
			return false
		}
	}
	return true
}

// recall looks up what is remembered of all devices that a request may try.
func (s *search) recall(r *request) {
	if r.group.known == nil {
		return
	}
	for w, ordinary := range s.inventory.Ordinary {
		if !r.adminAccess() {
			ordinary &^= s.available.allocated[w]
		}
		known, passed := r.group.known.word(w)
		r.group.selections.known[w] |= known & ordinary
		r.group.selections.passed[w] |= passed & known & ordinary
	}
}
