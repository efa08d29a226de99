// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"math/big"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
)

// KEP-5254 searches exhaustively: the verdict on a part of a set tells nothing
// about the whole, so every set must be completed and evaluated. 16 of 64 devices
// are 488,526,937,079,580 sets.
//
// Package bound tells more than the verdict does: whether *any* completion of a
// part can be satisfactory, from the structure of the expression and from tables of
// what it says about single devices and pairs. When it can be none, the constraint
// refuses the device that was about to be added.
//
// As in bound.go, a branch is cut only if the search would have met no error in it:
//
//   - the bound is "surely false", which includes that no completion fails;
//   - what else may be evaluated in the branch is known or can't fail: selectors of
//     all requests up to the last that the constraint covers, other CEL constraints
//     that become complete on the way.
//
// Selectors are looked up ahead for that (speculate). If one fails, its failure is
// forgotten and nothing is cut: the search may well find a solution before it
// comes to that device.
//
// Preparing this costs more than evaluating a few sets, so it begins when the first
// set was evaluated and was not satisfactory. Many searches end before that.

// pruner cuts for one CEL constraint. The zero value is not prepared yet.
type pruner struct {
	// useless: nothing can be cut.
	useless bool
	// size is the size of a complete set.
	size    int
	tables  *bound.Tables
	partial bound.Partial
}

// isHopeless tells whether no set that c can become is satisfactory, c as it is
// now, with the device last that was added for request r.
func (c *celConstraint) isHopeless(r *request, last *candidate) bool {
	if c.search.unbounded || c.rejected == 0 || !c.isPrepared() {
		return false
	}
	if !c.gather(r, last) || !c.othersKeepQuiet(r, last) {
		return false
	}
	if !c.pruner.tables.Hopeless(c.pruner.partial) {
		c.pruner.useless = c.pruner.tables.Exhausted()
		return false
	}
	c.cuts++
	return true
}

func (c *celConstraint) isPrepared() bool {
	if c.pruner.tables == nil && !c.pruner.useless {
		c.pruner.useless = !c.prepare()
	}
	return !c.pruner.useless
}

// prepare reads the expression. It is false if nothing can be cut, now and later.
func (c *celConstraint) prepare() bool {
	s := c.search
	if !withinLimit(s.requests[c.claimIndex]) {
		return false
	}
	for _, all := range c.span() {
		if len(all) != 1 || !s.speculate(all[0]) {
			return false
		}
	}
	if c.sets().Cmp(big.NewInt(s.boundsFrom)) < 0 {
		return false
	}
	for _, all := range c.covered {
		c.pruner.size += all[0].count
	}
	analysis := c.analysis(c.pruner.size)
	if !analysis.Understood() || !analysis.Fits(len(s.candidates)) || len(c.covered) > 1 && s.hasShared() {
		return false
	}
	values := make([]*device.Device, len(s.candidates))
	for i, candidate := range s.candidates {
		values[i] = candidate.value()
	}
	c.pruner.tables = analysis.Tabulate(s.ctx, values)
	c.pruner.partial = bound.Partial{Chosen: bound.NewBits(len(values)), Possible: bound.NewBits(len(values))}
	return true
}

// sets is the number of sets that an exhaustive search would have to look at.
func (c *celConstraint) sets() *big.Int {
	result := big.NewInt(1)
	for _, all := range c.covered {
		free, _ := c.search.free(all[0])
		result.Mul(result, new(big.Int).Binomial(int64(free), int64(all[0].count)))
	}
	return result
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

// gather determines what the set can still become. It is false if that can't be
// told.
func (c *celConstraint) gather(r *request, last *candidate) bool {
	p := &c.pruner.partial
	p.Chosen.Clear()
	p.Possible.Clear()
	p.Left = c.pruner.size - len(c.members)
	for _, member := range c.members {
		p.Chosen.Add(member.position)
	}
	for _, all := range c.covered {
		q := all[0]
		if q.order < r.order {
			continue
		}
		from := 0
		if q == r {
			from = last.position + 1
		}
		for _, candidate := range c.search.candidates[from:] {
			if candidate == last || p.Chosen.Has(candidate.position) || c.search.available.inUse(c.claimIndex, q, candidate) {
				continue
			}
			switch c.search.know(q, candidate) {
			case unknown:
				return false
			case eligible:
				if c.isAdmitted(q, candidate) {
					p.Possible.Add(candidate.position)
				}
			}
		}
	}
	return true
}

// isAdmitted asks the constraints that see a device of the request before c does.
func (c *celConstraint) isAdmitted(r *request, candidate *candidate) bool {
	for _, other := range r.constraints {
		bounding, ok := other.(boundingConstraint)
		if !ok {
			break
		}
		if !bounding.admits(candidate) {
			return false
		}
	}
	return true
}

// othersKeepQuiet tells whether no other CEL constraint may fail before the set of
// c is complete.
func (c *celConstraint) othersKeepQuiet(r *request, last *candidate) bool {
	for _, o := range c.search.celConstraints {
		if o == c || o.claimIndex != c.claimIndex || o.last < r.order || o.first > c.last {
			continue
		}
		if !o.isPrepared() || !o.gather(r, last) {
			return false
		}
		// It may or may not have seen the device yet.
		if p := &o.pruner.partial; !p.Chosen.Has(last.position) {
			p.Possible.Add(last.position)
		}
		if o.pruner.tables.Bound(o.pruner.partial)&bound.Error != 0 {
			return false
		}
	}
	return true
}
