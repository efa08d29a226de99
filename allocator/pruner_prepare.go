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
	if p.bounds == nil && !p.useless {
		p.useless = p.branch.isExhaustive() || !p.prepare()
	}
	return !p.useless
}

// prepare reads the expression. It is false if nothing can be cut, now and later.
func (p *pruner) prepare() bool {
	c := p.constraint
	if !withinLimit(p.branch.requests()) {
		return false
	}
	for _, all := range p.span() {
		if len(all) != 1 {
			return false
		}
	}
	for _, all := range c.covered {
		p.size += all[0].Count
	}
	if p.size == 0 || len(c.covered) > 1 && p.branch.hasShared() {
		return false
	}
	bounds := p.branch.bounds(c.definition, setShape{p.size, len(c.covered) == 1})
	if bounds == nil || !p.branch.speculate(p.span()) {
		return false
	}
	p.makeRoom()
	p.findEligible()
	p.bounds = bounds
	return true
}

// makeRoom has memory for all levels of the search.
func (p *pruner) makeRoom() {
	c := p.constraint
	requests, levels := len(c.covered), p.size+1
	sets := bitset.NewList(2+2*requests+2*levels, p.branch.devices())
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
	c := p.constraint
	for i, all := range c.covered {
		r := all[0]
		dependent := p.branch.eligible(r, p.eligible.At(i))
		p.volatile = p.volatile || dependent || len(r.constraints) > 1 || r.AdminAccess()
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
	return p.branch.requests()[p.constraint.first : p.constraint.last+1]
}
