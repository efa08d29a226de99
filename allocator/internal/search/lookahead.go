// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math/bits"
	"slices"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/cel/device/bitset"
)

// Lookahead cuts branches with too few devices left. Upstream's search takes 2^25 steps to refuse 26 devices if 25 exist.
//
// A cut must change neither the solution nor the error of a search. So lookahead cuts a branch only if it contains no solution
// and no error. Errors come from evaluations, so every evaluation in the branch must have succeeded already:
//
//    - Lookahead evaluates the selectors for every free device that the requests in the branch might try. If a selector fails,
//      lookahead does not cut the branch.
//    - Lookahead cuts no request with derived attributes.
//    - No CEL constraint may become complete in the branch.
//    - A request with allocationMode All fails with an error if a constraint refuses a device. Lookahead does not cut such a
//      request if a constraint covers it.
//
// Lookahead compares the number of devices that a branch needs with an upper bound of the number that it could get. For the
// current request, the bound counts the devices after the last device taken that the constraints and the shared counters
// permit. For later requests, [capacityBound] compares the numbers for each alternative, for each group of requests, under each
// constraint, and for requests whose devices must match.
//
// Lookahead starts when the search gives back a device for the first time. A search that succeeds at once has no extra cost.

// lookahead finds branches of a search that contain no solution because devices are missing.
type lookahead struct {
	search *Search
	// backtracked is true if the search has given back a device.
	backtracked bool
	// cannotFail is indexed by claim and request. If an entry is true, the search evaluates nothing but selectors for this
	// request and for all later requests and claims.
	cannotFail [][]bool
	// left is a buffer for the result of [lookahead.devicesLeft].
	left []*inventory.Candidate
}

// findWhatCannotFail fills cannotFail. All entries are false if a claim might exceed the limit on its results.
func (l *lookahead) findWhatCannotFail() {
	s := l.search
	l.cannotFail = make([][]bool, len(s.Requests))
	safe := true
	for _, requests := range s.Requests {
		safe = safe && s.withinLimit(requests)
	}
	for claim := len(s.Requests) - 1; claim >= 0; claim-- {
		requests := s.Requests[claim]
		l.cannotFail[claim] = make([]bool, len(requests)+1)
		l.cannotFail[claim][len(requests)] = safe
		for i := len(requests) - 1; i >= 0; i-- {
			for _, r := range requests[i] {
				safe = safe && r.cannotFail()
			}
			l.cannotFail[claim][i] = safe
		}
	}
}

// eligibility describes whether a request can get a free device, regardless of other devices.
type eligibility int8

const (
	// eligible means that the request can get the device.
	eligible eligibility = iota
	// ineligible means that the request can't get the device.
	ineligible
	// unknown means that a selector fails for the device or has not been evaluated.
	unknown
)

// evaluateSelectors evaluates the selectors of a request for all devices that the search may try, including devices that the
// search has taken. It ignores failures, because the search may never reach such a device. If it does, it repeats the failure.
func (l *lookahead) evaluateSelectors(r *Request) {
	s := l.search
	r.group.lookedAhead = true
	for _, c := range s.Inventory.Candidates {
		if r.AdminAccess() || !s.Available.Allocated().Has(c.Position) {
			// The group caches the verdict. It does not cache a failure.
			_, _ = r.isSelected(c)
		}
	}
}

// evaluateAhead evaluates the selectors of the requests for all devices that the search may try. It returns false if a selector
// fails, or if a request has derived attributes, whose expressions might fail.
func (l *lookahead) evaluateAhead(requests ...*Request) bool {
	return !slices.ContainsFunc(requests, func(r *Request) bool { return !l.cannotFailFor(r) })
}

func (l *lookahead) cannotFailFor(r *Request) bool {
	if len(r.Derived) > 0 {
		return false
	}
	s, inUse := l.search, bitset.Set(nil)
	if !r.AdminAccess() {
		inUse = s.Available.Allocated()
	}
	r.group.selectors.LookUpOrdinary(s.Inventory.Ordinary, inUse)
	for _, c := range s.Inventory.Candidates {
		if r.IsSimple(c) && r.group.selectors.Judged().Has(c.Position) || inUse != nil && inUse.Has(c.Position) {
			continue
		}
		if l.eligibilityOf(r, c) == unknown {
			return false
		}
	}
	return true
}

// eligibilityOf returns whether r can get the free device c. If a verdict is missing, it evaluates the selectors for all
// devices. It evaluates no other expression.
func (l *lookahead) eligibilityOf(r *Request, c *inventory.Candidate) eligibility {
	switch r.group.selectors.Verdict(c.Position) {
	case selection.NotSelected:
		return ineligible
	case selection.Unknown:
		if l.search.evaluator.NeverSelects(c) {
			return ineligible
		}
		if r.group.lookedAhead {
			return unknown
		}
		l.evaluateSelectors(r)
		return l.eligibilityOf(r, c)
	}
	// Like the search, check the capacity first. This check may fail. Then check whether the device is usable.
	switch enough, err := l.search.Available.HasCapacity(&r.Request, c); {
	case err != nil:
		return unknown
	case !enough || !l.search.Available.IsUsable(&r.Request, c):
		return ineligible
	default:
		return eligible
	}
}

// isBounded reports whether lookahead is active.
func (l *lookahead) isBounded() bool { return l.backtracked && !l.search.Planner.Unbounded }

// isInfeasible reports whether too few devices are left for the missing devices of the request, or for the requests after it.
func (l *lookahead) isInfeasible(p point, r *Request) bool {
	if !l.isBounded() || r.WantsAll() {
		return false
	}
	safe, wanted := l.cannotFail[p.claim][p.request], r.Count-p.device
	if !safe && (len(r.Derived) > 0 || l.hasPlenty(p, r, wanted)) {
		return false
	}
	left, known := l.devicesLeft(p, r)
	return known && (!l.isEnough(r, left, wanted) || safe && l.restIsInfeasible(p.claim, p.request+1, demand{r, wanted}))
}

// devicesLeft returns the devices that the request may still get. The slice is valid until the next call. known is false if
// eligibilityOf returns unknown for a device.
func (l *lookahead) devicesLeft(p point, r *Request) (left []*inventory.Candidate, known bool) {
	left = l.left[:0]
	for _, c := range l.search.Inventory.Candidates[p.from:] {
		if l.search.Available.InUse(p.claim, &r.Request, c) {
			continue
		}
		switch l.eligibilityOf(r, c) {
		case unknown:
			return nil, false
		case eligible:
			if r.isAdmitted(c) {
				left = append(left, c)
			}
		}
	}
	l.left = left
	return left, true
}

// hasPlenty reports whether enough ordinary devices are certainly free for the request and no constraint limits their number.
// It uses only a few bit operations. It returns false if examining each device would evaluate a selector.
func (l *lookahead) hasPlenty(p point, r *Request, wanted int) bool {
	if r.AdminAccess() || r.WantsCapacity() || len(r.bounding) > 0 {
		return false
	}
	devices, selectors := len(l.search.Inventory.Candidates), &r.group.selectors
	allocated, taken := l.search.Available.Allocated(), l.search.Available.Taken()
	count := 0
	for from := p.from; from < devices; from = (from/64 + 1) * 64 {
		w := from / 64
		free := ^(allocated[w] | taken[w]) >> (from % 64) << (from % 64)
		if behind := 64 - (devices - w*64); behind > 0 {
			free = free << behind >> behind
		}
		if !r.group.lookedAhead && free&^selectors.Judged()[w] != 0 {
			return false
		}
		count += bits.OnesCount64(free & selectors.Passed()[w] & l.search.Inventory.Ordinary[w])
	}
	return count >= wanted
}

// isEnough reports whether the request may get wanted of the devices together. Its constraints must admit each device.
func (l *lookahead) isEnough(r *Request, devices []*inventory.Candidate, wanted int) bool {
	if len(devices) < wanted {
		return false
	}
	for _, b := range r.bounding {
		if b.Most(devices) < wanted {
			return false
		}
	}
	return r.AdminAccess() || l.search.Available.MostByCounters(devices) >= wanted
}
