// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// What pruning needs is prepared when the first covered request of a constraint is tried
// for the first time, and holds for the whole search: which devices are eligible as far
// as nothing plays a role that the search takes, and the bounds of the expression. There
// is no pruning at all if something on the way to a complete set may fail that only the
// search itself finds out.

func (c *celConstraint) isPrepared() bool {
	if c.pruner.bounds == nil && !c.pruner.useless {
		c.pruner.useless = c.search.unbounded || !c.prepare()
	}
	return !c.pruner.useless
}

// prepare reads the expression. It is false if nothing can be cut, now and later.
func (c *celConstraint) prepare() bool {
	s, p := c.search, &c.pruner
	if !withinLimit(s.requests[c.claimIndex]) {
		return false
	}
	for _, all := range c.span() {
		if len(all) != 1 {
			return false
		}
	}
	for _, all := range c.covered {
		p.size += all[0].count
	}
	analysis := analysisOf(c.expression, p.size)
	if p.size == 0 || !analysis.Understood() || !analysis.Fits(len(s.candidates)) || len(c.covered) > 1 && s.hasShared() {
		return false
	}
	for _, all := range c.span() {
		if !s.speculate(all[0]) {
			return false
		}
	}
	c.findEligible()
	p.bounds = s.cache.tablesOf(s.hardware(), analysis, c.expression, p.size).NewBounds(s.ctx, s.budget)
	p.chosen = bound.NewBits(len(s.candidates))
	memory := bound.NewBitsList(2*(p.size+1), len(s.candidates))
	p.possible, p.required, p.settled = memory[:p.size+1], memory[p.size+1:], make([]bool, p.size+1)
	c.members, c.values = make([]*candidate, 0, p.size), make([]*device.Device, 0, p.size)
	return true
}

// findEligible looks at the devices for each covered request.
func (c *celConstraint) findEligible() {
	s, p := c.search, &c.pruner
	memory := bound.NewBitsList(2*len(c.covered)+1, len(s.candidates))
	p.eligible, p.later = memory[:len(c.covered)], memory[len(c.covered):2*len(c.covered)]
	for i, all := range c.covered {
		for _, candidate := range s.candidates {
			if s.isEligibleAlone(all[0], candidate) {
				p.eligible[i].Add(candidate.position)
				p.volatile = p.volatile || candidate.shared || len(candidate.device.ConsumesCounters) > 0 || len(candidate.device.Capacity) > 0
			}
		}
		p.volatile = p.volatile || len(all[0].constraints) > 1 || all[0].adminAccess()
	}
	p.volatile = p.volatile || c.last-c.first+1 > len(c.covered)
	after := memory[2*len(c.covered)]
	for i := len(c.covered) - 1; i >= 0; i-- {
		p.later[i].Set(after)
		after.Join(p.eligible[i])
	}
}

// isEligibleAlone tells whether the request can have the device as far as nothing that
// the search takes plays a role. The selectors were evaluated.
func (s *search) isEligibleAlone(r *request, c *candidate) bool {
	return r.selectable[c.position] == selected && s.isUsable(r, c) && (r.adminAccess() || !s.available.allocated[c.position])
}

// span are the requests of the claim from the first to the last that the
// constraint covers. What is between them is searched before a set is complete.
func (c *celConstraint) span() []alternatives {
	return c.search.requests[c.claimIndex][c.first : c.last+1]
}

// speculate evaluates the selectors of a request for all devices that it may try.
// It is false if one of them fails, or if something else may that is evaluated only
// when the search comes to it.
func (s *search) speculate(r *request) bool {
	if len(r.derived) > 0 || r.wantsAll() && len(r.constraints) > len(r.decides) {
		return false
	}
	for _, c := range s.candidates {
		if !r.adminAccess() && s.available.allocated[c.position] {
			continue
		}
		if s.know(r, c) == unknown {
			return false
		}
	}
	return true
}

// hasShared tells whether a device may be in a set more than once.
func (s *search) hasShared() bool {
	for _, c := range s.candidates {
		if c.shared {
			return true
		}
	}
	return false
}
