// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/celset/celset/allocator/internal/inventory"
)

// Bounds cut branches of the search in which too few devices are left: wanting 26
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
// last one taken, as far as its constraints and the shared counters permit
// ([supply]). For the requests after it ([rest]) they are, one by one: the devices
// for each alternative, for each kind of request, under each constraint, and for
// the sets of requests that must match.
//
// Nothing is checked before the search had to give something back for the first
// time. A search that succeeds at once costs nothing more.

// group is what requests have in common that want the same kind of device: the
// same devices are eligible for them.
type group struct {
	requests []*request
	// lookedAhead: the selectors were evaluated for all devices that the requests may
	// try.
	lookedAhead bool
	// selections are shared by the requests. known is where they are remembered for other
	// searches, nil if they are not.
	selections selections
	known      *selectionRow
	// last is what the selectors said last.
	last judgement
}

// groupOf finds the group of a request, or makes one.
func (s *search) groupOf(r *request) *group {
	for _, g := range s.groups {
		if sameKind(g.requests[0], r) {
			g.requests = append(g.requests, r)
			return g
		}
	}
	g := &group{requests: []*request{r}, selections: newSelections(len(s.inventory.Candidates)), known: s.selectionRowOf(r)}
	s.groups = append(s.groups, g)
	return g
}

func sameKind(a, b *request) bool {
	return a.class.Name == b.class.Name &&
		a.adminAccess() == b.adminAccess() &&
		equality.Semantic.DeepEqual(a.spec.Selectors, b.spec.Selectors) &&
		equality.Semantic.DeepEqual(a.spec.Tolerations, b.spec.Tolerations) &&
		equality.Semantic.DeepEqual(a.spec.Capacity, b.spec.Capacity)
}

// cannotFail tells whether meeting the request can't evaluate anything but
// selectors, whatever is tried.
func (r *request) cannotFail() bool {
	return len(r.derived) == 0 && len(r.decides) == 0 && (!r.wantsAll() || len(r.constraints) == 0)
}

// withinLimit tells whether no choice of alternatives gives the claim too many
// results.
func withinLimit(requests []alternatives) bool {
	devices := 0
	for _, all := range requests {
		most := 0
		for _, r := range all {
			most = max(most, r.count)
		}
		if most > resourceapi.AllocationResultsMaxSize-devices {
			return false
		}
		devices += most
	}
	return true
}

// findWhatCannotFail determines from which request on no request can fail and the limit
// on results plays no role.
func (s *search) findWhatCannotFail() {
	s.cannotFail = make([][]bool, len(s.requests))
	safe := true
	for _, requests := range s.requests {
		safe = safe && withinLimit(requests)
	}
	for claim := len(s.requests) - 1; claim >= 0; claim-- {
		requests := s.requests[claim]
		s.cannotFail[claim] = make([]bool, len(requests)+1)
		s.cannotFail[claim][len(requests)] = safe
		for i := len(requests) - 1; i >= 0; i-- {
			for _, r := range requests[i] {
				safe = safe && r.cannotFail()
			}
			s.cannotFail[claim][i] = safe
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

// lookAhead evaluates the selectors of a request for all devices that it may try,
// those in use by the search included. That one of them fails is forgotten: the
// search may never come to that device, and meets the failure itself if it does.
func (s *search) lookAhead(r *request) {
	r.group.lookedAhead = true
	for _, c := range s.inventory.Candidates {
		if r.adminAccess() || !s.available.allocated.Has(c.Position) {
			// What it is, is remembered; if it fails, nothing is.
			_, _ = s.isSelectable(r, c)
		}
	}
}

// know looks at a free device. Nothing is evaluated that may fail but selectors,
// once and ahead.
func (s *search) know(r *request, c *inventory.Candidate) known {
	switch r.group.selections.of(c.Position) {
	case notSelected:
		return ineligible
	case selectionUnknown:
		if s.neverSelected(c) {
			return ineligible
		}
		if r.group.lookedAhead {
			return unknown
		}
		s.lookAhead(r)
		return s.know(r, c)
	}
	// In the order of the search: capacity, which may fail, before usability.
	switch enough, err := s.available.hasCapacity(r, c); {
	case err != nil:
		return unknown
	case !enough || !s.isUsable(r, c):
		return ineligible
	default:
		return eligible
	}
}

// isBounded tells whether bounds are looked at.
func (s *search) isBounded() bool { return s.backtracked && !s.allocator.unbounded }

// isInfeasible tells whether the request can't get the rest of its devices, or the
// requests after it can't get theirs.
func (s *search) isInfeasible(p place, r *request) bool {
	if !s.isBounded() || r.wantsAll() {
		return false
	}
	safe := s.cannotFail[p.claim][p.request]
	if !safe && len(r.derived) > 0 {
		return false
	}
	supply := supply{search: s, request: r, wanted: r.count - p.device}
	for _, c := range s.inventory.Candidates[p.from:] {
		if s.available.inUse(p.claim, r, c) {
			continue
		}
		switch s.know(r, c) {
		case unknown:
			return false
		case eligible:
			supply.add(c)
		}
	}
	return !supply.isEnough() || safe && s.restIsInfeasible(p.claim, p.request+1, demand{r, supply.wanted})
}

// supply counts the devices that a request may still get together.
type supply struct {
	search  *search
	request *request
	wanted  int
	devices []*inventory.Candidate
}

// add counts the device if no constraint refuses it now: it would later, too.
// What comes after a CEL constraint is not asked, because that constraint would
// be evaluated first and might fail.
func (s *supply) add(c *inventory.Candidate) {
	for _, constraint := range s.request.constraints {
		bounding, ok := constraint.(boundingConstraint)
		if !ok {
			break
		}
		if !bounding.admits(c) {
			return
		}
	}
	s.devices = append(s.devices, c)
}

func (s *supply) isEnough() bool {
	if len(s.devices) < s.wanted {
		return false
	}
	for _, constraint := range s.request.constraints {
		bounding, ok := constraint.(boundingConstraint)
		if !ok {
			break
		}
		if bounding.most(s.devices) < s.wanted {
			return false
		}
	}
	return s.search.available.mostByCounters(s.devices) >= s.wanted
}
