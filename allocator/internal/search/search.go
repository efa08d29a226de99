// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"iter"
	"math"
	"slices"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
)

// The search handles one request and one device at a time:
//
//   1. nextRequest handles the next request. After the last request the solution is complete, and nextRequest yields it.
//   2. try handles one alternative of a request. nextRequest calls try for each alternative in order.
//   3. nextDevice finds the next device of the alternative. When the alternative has all its devices, nextDevice continues with
//      the next request.
//   4. takeAny takes the first eligible candidate that no constraint refuses. For a request with allocationMode All,
//      takeNextOfAll takes the only possible next device instead.
//   5. proceed calls nextDevice for the devices after it. If nextDevice finds no solution, giveBack undoes the last take, and
//      takeAny takes the next candidate.
//
// nextRequest and nextDevice count a step each. A function that finds no solution restores the state from before its call. Most
// cuts come before any change. After a cut, Request.decide and CELConstraint.Add undo their own changes.

// Run finds the first solution and leaves it in s.Solution. It returns false if there is no solution.
func (s *Search) Run() (bool, error) {
	for range s.Solutions() {
		s.logger.V(6).Info("Allocation result found")
		return true, nil
	}
	return false, s.Err
}

// Solutions yields the solutions in order. A solution is valid until the search continues. If the caller's loop ends early, the
// search keeps its last solution. If an error ended the search, [Search.Err] holds the error.
func (s *Search) Solutions() iter.Seq[*Solution] {
	return func(yield func(*Solution) bool) {
		s.yield = yield
		_, s.Err = s.iterate()
	}
}

// iterate runs the search. It evaluates nothing if requests with allocationMode All exceed the limit on a claim's devices.
func (s *Search) iterate() (outcome, error) {
	if (reason{s}).overLimit() != "" {
		return none, nil
	}
	return s.nextRequest(0, 0)
}

// nextRequest handles the request and all later requests. If it finds no solution, it gives back all devices that it took.
func (s *Search) nextRequest(claim, request int) (outcome, error) {
	if err := s.step(); err != nil {
		return none, err
	}
	switch {
	case s.isNotBetter():
		return none, nil
	case claim == len(s.Claims) && s.yield(&s.Solution):
		return none, nil
	case claim == len(s.Claims):
		return found, nil
	case request == len(s.Requests[claim]):
		result, err := s.nextRequest(claim+1, 0)
		if result == tooMany {
			// The limit applies to each claim. Other devices for this claim may lead to another alternative in the next claim.
			result = none
		}
		return result, err
	}
	if s.lookahead.restIsInfeasible(claim, request) {
		return none, nil
	}
	result := tooMany
	for _, r := range s.Requests[claim][request] {
		tried, err := s.try(point{claim: claim, request: request}, r)
		switch {
		case err != nil || tried == found:
			return tried, err
		case tried == none:
			result = none
		}
	}
	return result, nil
}

// step counts one step and returns an error if the search was cancelled or has exhausted its budget.
func (s *Search) step() error {
	s.Work.Steps++
	if err := s.Work.Cancelled(); err != nil {
		return err
	}
	if len(s.celConstraints) == 0 && s.Improves == nil {
		return nil
	}
	switch over := s.Work.Exceeded(); {
	case over == nil:
		return nil
	case s.Improves != nil:
		return s.preferenceBudgetError(*over)
	default:
		return s.currentConstraint().budgetError(*over, nil)
	}
}

// try handles a request with its alternative r.
func (s *Search) try(p point, r *Request) (outcome, error) {
	s.Solution.Decisions = append(s.Solution.Decisions, r)
	satisfied, err := r.decide()
	if err != nil || !satisfied {
		s.Solution.Decisions = s.Solution.Decisions[:len(s.Solution.Decisions)-1]
		return none, err
	}
	result, err := s.nextDevice(p, r)
	if result != found {
		s.Solution.Decisions = s.Solution.Decisions[:len(s.Solution.Decisions)-1]
		r.undecide(len(r.decides))
	}
	return result, err
}

// nextDevice finds the devices of r from point p on, and then handles the requests after r.
func (s *Search) nextDevice(p point, r *Request) (outcome, error) {
	switch {
	case s.isNotBetter():
		return none, nil
	case r.WantsAll() && len(r.all) == 0:
		// A request with allocationMode All needs at least one device.
		return none, nil
	case p.device == r.Count:
		return s.nextRequest(p.claim, p.request+1)
	case r.Count-p.device > s.Planner.MaxResults-s.resultCount[p.claim]:
		return tooMany, nil
	}
	if p.device > 0 {
		if err := s.step(); err != nil {
			return none, err
		}
	}
	switch {
	case r.WantsAll():
		return s.takeNextOfAll(p, r)
	case !r.isPruned() && s.lookahead.isInfeasible(p, r):
		return none, nil
	default:
		return s.takeAny(p, r)
	}
}

// takeNextOfAll takes the next device of a request with allocationMode All. It tries no other device, because the request must
// get all of them and their order does not matter.
func (s *Search) takeNextOfAll(p point, r *Request) (outcome, error) {
	c := r.all[p.device]
	if s.Available.InUse(p.claim, &r.Request, c) {
		return none, nil
	}
	if _, taken, err := s.take(p.claim, r, c); err != nil || !taken {
		return none, err
	}
	return s.proceed(p, r, c)
}

// takeAny tries the devices from p.from on. After a device fails, takeAny skips all devices of the same symmetry class.
func (s *Search) takeAny(p point, r *Request) (outcome, error) {
	var failed failedClasses
	for position := r.next(p.from); position < len(s.Inventory.Candidates); position = r.next(position + 1) {
		if failed.has(position) {
			s.symmetry.skipped++
			continue
		}
		c := s.Inventory.Candidates[position]
		eligible, err := s.isEligible(p.claim, r, c)
		if err != nil {
			return none, err
		}
		if !eligible {
			continue
		}
		refusedBy, taken, err := s.take(p.claim, r, c)
		if err != nil {
			return none, err
		}
		if taken {
			if result, err := s.proceed(p, r, c); result != none || err != nil {
				return result, err
			}
			if s.isNotBetter() {
				// The value of the objective does not depend on this request's devices. More tries can't improve it, but may fail.
				return none, nil
			}
		}
		if taken || refusedBy != nil {
			failed.add(&s.symmetry, p, position)
		}
	}
	return none, nil
}

// isEligible reports whether the request may get the device. It evaluates no selector for a device in use.
func (s *Search) isEligible(claim int, r *Request, c *inventory.Candidate) (bool, error) {
	if s.Available.InUse(claim, &r.Request, c) {
		return false, nil
	}
	selected, err := r.isSelected(c)
	if err != nil || !selected {
		return false, err
	}
	if r.IsSimple(c) {
		return true, nil
	}
	return s.Available.HasCapacity(&r.Request, c)
}

// proceed continues the search after c was taken at p. If the search finds no solution, proceed gives c back.
func (s *Search) proceed(p point, r *Request, c *inventory.Candidate) (outcome, error) {
	p.device++
	p.from = c.Position + 1
	result, err := s.nextDevice(p, r)
	if result != found {
		s.giveBack()
	}
	return result, err
}

// take takes a selected device that is not in use, unless the device is unusable or a constraint refuses it. If a constraint
// refuses the device, take returns that constraint. If the device is not taken, the state is unchanged.
func (s *Search) take(claim int, r *Request, c *inventory.Candidate) (refusedBy constraint.Constraint, taken bool, err error) {
	var reserved availability.Reservation
	if !r.IsSimple(c) {
		usable := s.Available.IsUsable(&r.Request, c)
		if usable && !r.AdminAccess() {
			reserved, usable = s.Available.Reserve(c)
		}
		if !usable {
			return nil, false, nil
		}
	}
	for i, constraint := range r.constraints {
		if added, err := constraint.Add(&r.Request, c); err != nil || !added {
			removeFrom(r.constraints[:i], c)
			s.Available.Release(c, reserved)
			return constraint, false, err
		}
	}
	if marked, err := s.mark(claim, r, c, &reserved); err != nil || !marked {
		removeFrom(r.constraints, c)
		s.Available.Release(c, reserved)
		return nil, false, err
	}
	s.Solution.Choices = append(s.Solution.Choices, Choice{Claim: claim, Request: r, Candidate: c, Reservation: reserved})
	s.resultCount[claim]++
	if s.traces {
		s.logger.V(7).Info("Device taken", "device", c.ID, "request", r.Name)
	}
	return nil, true, nil
}

// mark marks the device as taken if the device has enough capacity, and reports whether it did.
func (s *Search) mark(claim int, r *Request, c *inventory.Candidate, reserved *availability.Reservation) (bool, error) {
	if !r.IsSimple(c) {
		if enough, err := s.Available.HasCapacity(&r.Request, c); err != nil || !enough {
			return false, err
		}
	}
	err := s.Available.Mark(claim, &r.Request, c, reserved)
	return err == nil, err
}

// giveBack undoes the last take.
func (s *Search) giveBack() {
	s.lookahead.backtracked = true
	last := s.Solution.Choices[len(s.Solution.Choices)-1]
	s.Solution.Choices = s.Solution.Choices[:len(s.Solution.Choices)-1]
	s.resultCount[last.Claim]--
	s.Available.Unmark(last.Candidate)
	removeFrom(last.Request.constraints, last.Candidate)
	s.Available.Release(last.Candidate, last.Reservation)
	if s.traces {
		s.logger.V(7).Info("Device given back", "device", last.ID, "request", last.Request.Name)
	}
}

func removeFrom(constraints []constraint.Constraint, c *inventory.Candidate) {
	for i := len(constraints) - 1; i >= 0; i-- {
		constraints[i].Remove(c)
	}
}

// withinLimit reports whether a claim with these requests stays within the limit on results with all choices of alternatives.
func (s *Search) withinLimit(requests []Alternatives) bool {
	devices := 0
	for _, all := range requests {
		most := 0
		for _, r := range all {
			most = max(most, r.Count)
		}
		if most > s.Planner.MaxResults-devices {
			return false
		}
		devices += most
	}
	return true
}

// IsPredictable evaluates the selectors of the given requests of a claim ahead. It reports whether the selectors succeeded, the
// requests have no derived attributes, and the claim can't exceed the limit on results.
func (s *Search) IsPredictable(claim int, requests []*Request) bool {
	return !s.Planner.Unbounded && s.withinLimit(s.Requests[claim]) && s.lookahead.evaluateAhead(requests...)
}

// MayFailBetween reports whether a CEL constraint of the claim may fail. It checks each constraint
// that begins at request to or earlier and ends at request from or later. The constraint's set may contain the device last.
func (s *Search) MayFailBetween(claim, from, to int, last *inventory.Candidate) bool {
	return slices.ContainsFunc(s.celConstraints, func(o *CELConstraint) bool {
		return o.claimIndex == claim && o.last >= from && o.first <= to && o.mayFail(last)
	})
}

// IsConstrained reports whether the search has CEL constraints.
func (s *Search) IsConstrained() bool { return len(s.celConstraints) > 0 }

// Stats returns the counts of the work done.
func (s *Search) Stats() answer.Stats {
	stats := answer.Stats{Steps: s.Work.Steps, Cost: int64(min(s.Work.Cost.Spent(), math.MaxInt64))}
	for _, constraint := range s.celConstraints {
		stats.Evaluations += constraint.evaluations
		stats.SetsAccepted += constraint.accepted
		stats.SetsProven += constraint.proven
		stats.CacheHits += constraint.hits
		stats.Cuts += constraint.cuts()
		for _, p := range constraint.pruners {
			if p.bounds != nil {
				stats.TableEvaluations += p.bounds.Evaluations()
				stats.TableBuilds += p.bounds.Builds()
			}
		}
	}
	return stats
}
