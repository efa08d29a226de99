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

// Lookahead cuts branches with too few devices left. Upstream's search takes 2^25 steps to find out that 26 devices can't be had
// if 25 exist.
//
// A bound must never change the answer, and an error is an answer. So lookahead cuts a branch only if the search would find
// nothing there and would meet no error. Errors come from evaluations, so everything that the branch evaluates must have a result
// already:
//
//   - Selectors are evaluated ahead for every free device that the requests in the branch might try. If one fails, the branch
//     stays.
//   - Requests with derived attributes are not cut.
//   - No CEL constraint may become complete in the branch.
//   - Requests for all devices fail with an error if a constraint refuses a device. They are not cut if a constraint covers them.
//
// Lookahead compares what a branch needs with an upper bound of what it could find. For the current request, the bound counts the
// devices after the last one taken that its constraints and the shared counters permit. For later requests, [capacityBound]
// compares the devices for each alternative, for each kind of request, under each constraint, and for groups of requests that
// must match.
//
// Lookahead starts when the search has given back a device for the first time, so a search that succeeds at once pays nothing.

// lookahead finds branches of a search that hold no solution.
type lookahead struct {
	search *Search
	// backtracked reports whether the search has given back a device.
	backtracked bool
	// cannotFail reports, for each request of each claim, whether the search evaluates nothing but selectors from there on.
	cannotFail [][]bool
	// left is a buffer for the result of [lookahead.devicesLeft].
	left []*inventory.Candidate
}

// findWhatCannotFail fills cannotFail. No entry is true if the limit on results could matter.
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

// eligibility is the state of a free device for a request.
type eligibility int8

const (
	// eligible devices can be taken if only the device itself matters.
	eligible eligibility = iota
	// ineligible devices can't be taken.
	ineligible
	// unknown means that a selector has not been evaluated or fails.
	unknown
)

// evaluateSelectors evaluates the selectors of a request for all devices that it may try, including devices in use by the search. It ignores
// failures: the search may never reach such a device, and meets the failure itself if it does.
func (l *lookahead) evaluateSelectors(r *Request) {
	s := l.search
	r.group.lookedAhead = true
	for _, c := range s.Inventory.Candidates {
		if r.AdminAccess() || !s.Available.Allocated().Has(c.Position) {
			// A verdict is remembered, a failure is not.
			_, _ = r.isSelected(c)
		}
	}
}

// evaluateAhead evaluates the selectors of requests for all devices that they may try. It returns false if one of them fails, or if
// the search evaluates something else that may fail.
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

// eligibilityOf returns the state of a free device. If necessary it evaluates the selectors ahead for all devices, and no other
// expression.
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
	// In the order of the search: capacity, which may fail, before usability.
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

// isInfeasible reports whether the request can't get its missing devices, or the requests after it can't get theirs.
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

// devicesLeft returns the devices that the request may still get. The slice is valid until the next call. known is false if the
// devices depend on something that only the search itself evaluates.
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

// hasPlenty reports, by a few bit operations, whether the request can certainly get enough devices: enough ordinary devices are
// free, and no constraint bounds their number. It returns false if examining each device would evaluate a selector.
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

// isEnough reports whether the request may get the wanted number of these devices together. Its constraints admit each of them.
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
