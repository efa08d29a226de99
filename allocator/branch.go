// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"iter"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// branch is all that a pruner asks of the search that it cuts: what devices there are, which of
// them can still be had where the search stands, and what else may be evaluated in the branch.
type branch struct {
	search *search
	// claim is the place of the constraint's claim.
	claim int
}

func (b branch) candidate(position int) *inventory.Candidate {
	return b.search.inventory.Candidates[position]
}

// devices is how many there are.
func (b branch) devices() int { return len(b.search.inventory.Candidates) }

// hasShared tells whether some of them can be had several times.
func (b branch) hasShared() bool { return b.search.inventory.HasShared }

// isExhaustive tells whether nothing may be cut.
func (b branch) isExhaustive() bool { return b.search.allocator.unbounded }

// requests are those of the claim.
func (b branch) requests() []alternatives { return b.search.requests[b.claim] }

// bounds are those of the expression for complete sets of the given shape, and nil if it can't be
// read, or if sets may fail because of what they cost. When the search is over nothing more is read.
func (b branch) bounds(d *definition, shape setShape) *bound.Bounds {
	s := b.search
	if s.ctx.Err() != nil {
		return nil
	}
	tables := s.tablesOf(d, shape)
	if tables == nil {
		return nil
	}
	return tables.NewBounds(s.ctx, s.work.cost)
}

// speculate is false if something may fail on the way through the requests that only the search
// itself finds out.
func (b branch) speculate(requests []*request) bool {
	for _, r := range requests {
		if !b.search.lookahead.speculate(r) {
			return false
		}
	}
	return true
}

// eligible enters the devices that the request can have whatever the search takes. volatile: it
// also depends on that.
func (b branch) eligible(r *request, to bitset.Set) (volatile bool) {
	s := b.search
	to.SetTo(r.group.selectors.Passed())
	if !r.AdminAccess() {
		to.Drop(s.available.Allocated())
	}
	if to.IsWithin(s.inventory.Ordinary) {
		return false
	}
	for position := range to.All() {
		c := b.candidate(position)
		if !s.available.IsUsable(&r.Request, c) {
			to.Remove(position)
		} else if c.Shared || len(c.Device.ConsumesCounters) > 0 || len(c.Device.Capacity) > 0 {
			volatile = true
		}
	}
	return volatile
}

// joinFree adds those of the eligible devices that the request can have and that are not in use.
func (b branch) joinFree(to, eligible bitset.Set, r *request) {
	taken := b.search.available.Taken()
	for w, word := range eligible {
		to[w] |= word &^ taken[w]
	}
	if !r.AdminAccess() {
		return
	}
	for position := range eligible.All() {
		if !b.search.available.InUse(b.claim, &r.Request, b.candidate(position)) {
			to.Add(position)
		}
	}
}

// mayTake tells whether the device can still be had for the request. Where the search would look
// at the constraint before it finds out that too little of the device is left, as it does for
// "all", it counts as if it could.
func (b branch) mayTake(r *request, c *inventory.Candidate) bool {
	return !b.search.available.InUse(b.claim, &r.Request, c) &&
		(r.WantsAll() || b.search.lookahead.know(r, c) != ineligible) && r.isAdmitted(c)
}

// others are the other CEL constraints of the claim that may be asked between two of its requests
// in a branch in which no set satisfies the given one.
func (b branch) others(than *celConstraint, from, to int) iter.Seq[*celConstraint] {
	return func(yield func(*celConstraint) bool) {
		behind := false
		for _, o := range b.search.celConstraints {
			if o == than {
				behind = true
				continue
			}
			if o.claimIndex != b.claim || o.last < from || o.first > to || o.isAskedAfter(than, behind) {
				continue
			}
			if !yield(o) {
				return
			}
		}
	}
}
