// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import "slices"

// stage is an assignment to the first requests of a claim.
type stage struct {
	chosen []choice
	// served is the number of requests, the last of which is being served.
	served int
	last   *request
	// complete tells whether the last one has its devices already.
	complete bool
}

// begun asks expressions about assignments to the first requests of a claim, for
// the errors only.
//
// A search that serves one request after the other has asked about a set before it
// finds out that a later request can't be served. If the expression fails then,
// that is its answer.
func (s *solver) begun(c *claim) func(stage) error {
	return func(at stage) error {
		if !s.Eager || !s.isReached(at) {
			return nil
		}
		for i, constraint := range c.constraints {
			if constraint.program == nil || !c.isDecidedAt(constraint, at) || !s.comesTo(c, i, at) {
				continue
			}
			covered := constraint.covered(at.chosen)
			if len(covered) == 0 {
				continue
			}
			s.solution.Evaluations++
			if _, err := s.evaluate(constraint, covered); err != nil {
				return &EvaluationError{Evaluation: s.solution.Evaluations, AboutNode: constraint.aboutNode, Err: err}
			}
		}
		return nil
	}
}

// isReached tells whether the search comes to ask constraints about the assignment.
// Whether there is room for the last of all devices is asked after them.
func (s *solver) isReached(at stage) bool {
	roomFor := at.chosen
	if at.complete && at.last.all {
		roomFor = roomFor[:len(roomFor)-1]
	}
	earlier := slices.Concat(s.chosen...)
	return s.free(at.chosen) && s.haveCounters(slices.Concat(earlier, at.chosen)) && s.haveCapacity(slices.Concat(earlier, roomFor))
}

// isDecidedAt tells whether it is now that the devices of the constraint become
// known: when the last request that it is about has its devices, or is to be
// served in a way that adds none.
func (c *claim) isDecidedAt(constraint constraint, at stage) bool {
	isAbout := func(alternatives []*request) bool { return slices.ContainsFunc(alternatives, constraint.covers) }
	if !isAbout(c.requests[at.served-1]) || slices.ContainsFunc(c.requests[at.served:], isAbout) {
		return false
	}
	return at.complete == (constraint.covers(at.last) && at.last.count > 0)
}

// comesTo tells whether the constraints that compare attributes accept the
// assignment before the constraint at index is asked. About its last device only
// those are asked first that stand before it.
func (s *solver) comesTo(c *claim, index int, at stage) bool {
	for i, constraint := range c.constraints {
		seen := at.chosen
		if at.complete && i > index {
			seen = seen[:len(seen)-1]
		}
		if constraint.program == nil && !constraint.compares(constraint.covered(seen), s.Features.ListTypeAttributes) {
			return false
		}
	}
	return true
}
