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

// Looking ahead cuts branches of the search in which too few devices are left: wanting 26
// devices where 25 exist takes upstream's search 2^25 steps to find out.
//
// A bound must never change the answer, and an error is an answer. A branch that
// is cut must be one in which the search would have found nothing and would have
// met no error either. Errors come from what is evaluated in the branch, so a
// branch is cut only if all that is known already:
//
//   - selectors, for every free device that the requests in the branch might try.
//     They are evaluated ahead; a branch with a device on which one fails is not cut;
//   - derived attributes: requests that have some are not cut;
//   - CEL constraints: none may become complete in the branch;
//   - requests for all devices, which fail with an error if a constraint refuses
//     one of them: not if they are covered by a constraint.
//
// What is compared is an upper bound of what a branch could still find with what
// it must find. For the request at hand these are the devices that come after the
// last one taken, as far as its constraints and the shared counters permit. For the
// requests after it ([capacityBound]) they are, one by one: the devices for each
// alternative, for each kind of request, under each constraint, and for the sets of
// requests that must match.
//
// Nothing is checked before the search had to give something back for the first
// time. A search that succeeds at once costs nothing more.

// lookahead tells which branches of a search have nothing in them.
type lookahead struct {
	search *Search
	// backtracked: something was given back.
	backtracked bool
	// cannotFail tells for each request of each claim whether nothing but selectors is
	// evaluated from there on.
	cannotFail [][]bool
	// left is memory for the devices that are left for a request.
	left []*inventory.Candidate
}

// findWhatCannotFail determines from which request on no request can fail and the limit
// on results plays no role.
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

// known is what a look at the free devices for a request tells.
type known int8

const (
	// eligible devices can be taken as far as the device alone decides.
	eligible known = iota
	// ineligible devices can't.
	ineligible
	// unknown: a selector would have to be evaluated, or fails.
	unknown
)

// Look evaluates the selectors of a request for all devices that it may try,
// those in use by the search included. That one of them fails is forgotten: the
// search may never come to that device, and meets the failure itself if it does.
func (l *lookahead) Look(r *Request) {
	s := l.search
	r.Group.LookedAhead = true
	for _, c := range s.Inventory.Candidates {
		if r.AdminAccess() || !s.Available.Allocated().Has(c.Position) {
			// What it is, is remembered; if it fails, nothing is.
			_, _ = r.IsSelected(c)
		}
	}
}

// speculate evaluates the selectors of requests for all devices that they may try.
// It is false if one of them fails, or if something else may that is evaluated only
// when the search comes to it.
func (l *lookahead) speculate(requests ...*Request) bool {
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
	r.Group.Selectors.Recall(s.Inventory.Ordinary, inUse)
	for _, c := range s.Inventory.Candidates {
		if r.IsSimple(c) && r.Group.Selectors.Known().Has(c.Position) || inUse != nil && inUse.Has(c.Position) {
			continue
		}
		if l.know(r, c) == unknown {
			return false
		}
	}
	return true
}

// know looks at a free device. Nothing is evaluated that may fail but selectors,
// once and ahead.
func (l *lookahead) know(r *Request, c *inventory.Candidate) known {
	switch r.Group.Selectors.Verdict(c.Position) {
	case selection.NotSelected:
		return ineligible
	case selection.Unknown:
		if l.search.Evaluator.NeverSelects(c) {
			return ineligible
		}
		if r.Group.LookedAhead {
			return unknown
		}
		l.Look(r)
		return l.know(r, c)
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

// isBounded reports whether bounds are looked at.
func (l *lookahead) isBounded() bool { return l.backtracked && !l.search.Planner.Unbounded }

// isInfeasible reports whether the request can't get the rest of its devices, or the
// requests after it can't get theirs.
func (l *lookahead) isInfeasible(p Place, r *Request) bool {
	if !l.isBounded() || r.WantsAll() {
		return false
	}
	safe, wanted := l.cannotFail[p.claim][p.request], r.Count-p.Device
	if !safe && (len(r.Derived) > 0 || l.HasPlenty(p, r, wanted)) {
		return false
	}
	left, known := l.DevicesLeft(p, r)
	return known && (!l.IsEnough(r, left, wanted) || safe && l.restIsInfeasible(p.claim, p.request+1, demand{r, wanted}))
}

// DevicesLeft are the devices that the request may still get, until it is called again. They are not known
// if that depends on what is evaluated only when the search comes to it.
func (l *lookahead) DevicesLeft(p Place, r *Request) (left []*inventory.Candidate, known bool) {
	left = l.left[:0]
	for _, c := range l.search.Inventory.Candidates[p.From:] {
		if l.search.Available.InUse(p.claim, &r.Request, c) {
			continue
		}
		switch l.know(r, c) {
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

// HasPlenty tells from a few words of bits that the request may get the devices it wants: there
// are enough ordinary ones, and no constraint bounds how many it gets together. It is false where
// a look at each device would evaluate a selector.
func (l *lookahead) HasPlenty(p Place, r *Request, wanted int) bool {
	if r.AdminAccess() || r.WantsCapacity() || len(r.Bounding) > 0 {
		return false
	}
	devices, selectors := len(l.search.Inventory.Candidates), &r.Group.Selectors
	allocated, taken := l.search.Available.Allocated(), l.search.Available.Taken()
	count := 0
	for from := p.From; from < devices; from = (from/64 + 1) * 64 {
		w := from / 64
		free := ^(allocated[w] | taken[w]) >> (from % 64) << (from % 64)
		if behind := 64 - (devices - w*64); behind > 0 {
			free = free << behind >> behind
		}
		if !r.Group.LookedAhead && free&^selectors.Known()[w] != 0 {
			return false
		}
		count += bits.OnesCount64(free & selectors.Passed()[w] & l.search.Inventory.Ordinary[w])
	}
	return count >= wanted
}

// IsEnough reports whether the request may get as many of the devices together, all of which are
// admitted.
func (l *lookahead) IsEnough(r *Request, devices []*inventory.Candidate, wanted int) bool {
	if len(devices) < wanted {
		return false
	}
	for _, b := range r.Bounding {
		if b.Most(devices) < wanted {
			return false
		}
	}
	return r.AdminAccess() || l.search.Available.MostByCounters(devices) >= wanted
}
