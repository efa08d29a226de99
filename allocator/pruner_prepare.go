// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

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

// newPruner is for sets with an alternative of the first covered request.
func newPruner(c *celConstraint, b branch, first *request) *pruner {
	p := &pruner{constraint: c, branch: b, first: first, useless: !slices.Contains(c.covered[0], first)}
	p.covered = append(p.covered, first)
	for _, all := range c.covered[1:] {
		p.covered = append(p.covered, all[0])
	}
	return p
}

// prepare reads the expression. It is false if nothing can be cut, now and later.
func (p *pruner) prepare() bool {
	c := p.constraint
	span, ok := p.span()
	if !ok || !withinLimit(p.branch.requests()) {
		return false
	}
	for _, r := range p.covered {
		p.size += r.Count
	}
	if p.size == 0 {
		return false
	}
	bounds := p.branch.bounds(c.definition, setShape{p.size, len(p.covered) == 1})
	if bounds == nil || !p.branch.speculate(span) {
		return false
	}
	p.makeRoom()
	p.findEligible()
	if p.mayRepeat() {
		return false
	}
	p.bounds = bounds
	if c.goal != nil {
		p.raise()
	}
	return true
}

// mayRepeat tells whether a device may be in the set twice: one of which several requests may have a
// part, for two of those covered. Sets of bits know nothing of that.
func (p *pruner) mayRepeat() bool {
	if len(p.covered) == 1 || !p.branch.hasShared() {
		return false
	}
	for i := range p.covered {
		for position := range p.eligible.At(i).All() {
			if p.later.At(i).Has(position) && p.branch.candidate(position).Shared {
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
	sets := bitset.NewList(2+2*requests+2*levels, p.branch.devices())
	cut := func(count int) (part bitset.List) {
		part, sets = sets.Cut(count)
		return part
	}
	p.chosen, p.none = cut(1).At(0), cut(1).At(0)
	p.eligible, p.later = cut(requests), cut(requests)
	p.domain, p.forced = cut(levels), cut(levels)
	c.members = slices.Grow(c.members, p.size)
}

// findEligible looks at the devices for each covered request.
func (p *pruner) findEligible() {
	c := p.constraint
	for i, r := range p.covered {
		dependent := p.branch.eligible(r, p.eligible.At(i))
		p.volatile = p.volatile || dependent || len(r.constraints) > 1 || r.AdminAccess()
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
func (p *pruner) span() ([]*request, bool) {
	c := p.constraint
	span := []*request{p.first}
	for _, all := range p.branch.requests()[c.first+1 : c.last+1] {
		if len(all) != 1 {
			return nil, false
		}
		span = append(span, all[0])
	}
	return span, true
}
