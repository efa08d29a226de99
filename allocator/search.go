// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"iter"
	"math"
	"slices"

	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/cel"
)

// search is the state of one Allocate call. One goroutine works with it.
type search struct {
	plan.OnNode
	ctx    context.Context
	logger klog.Logger
	// traces: each step is logged.
	traces bool

	// requests has the requests of each claim, in order.
	requests       [][]alternatives
	celConstraints []*celConstraint
	groups         []*group

	// evaluator evaluates selectors and derived attributes.
	evaluator selection.Evaluator
	// available is what is left of the candidates.
	available *availability.Availability
	// solution is what the search took so far. When it ends without success it is empty.
	solution solution
	// resultCount counts the choices of each claim.
	resultCount []int
	lookahead   lookahead
	symmetry    symmetry
	work        budget.Work

	// improves is what a search for a better solution begins with, and objective says what is better. They are nil
	// in others.
	improves  *improvement
	objective objective
	// tellsApart: devices that look the same are not, because it matters which others are left.
	tellsApart bool
	// accepts is the condition of [WithAcceptance], nil if there is none.
	accepts *acceptance
	// yield is called for each solution, and is false if no more are wanted. nil: the first one is all that is.
	yield func(*solution) bool
	// err is what ended [search.solutions].
	err error
}

// place is where the search stands: which device of which request of which claim
// is to be found next, and the first position at which it may be. Devices of one
// request are taken in ascending order, so that every set is tried once and not
// in all its orders.
type place struct {
	claim, request, device int
	from                   int
}

// outcome is how a part of the search ended, besides with an error.
type outcome int8

const (
	// none: there is no solution from here.
	none outcome = iota
	// found: the choices are the solution, and no other is wanted.
	found
	// tooMany: there is no solution from here because a claim would get more results
	// than it may have. Other devices for the requests before don't change that, so
	// they are not tried; other alternatives may.
	tooMany
)

// newSearch checks claims and requests in their order and sets up the state, for any solution, or for one that is
// better than another.
func newSearch(ctx context.Context, on plan.OnNode, improves *improvement) (*search, error) {
	a := on.Planner
	s := &search{
		OnNode:      on,
		improves:    improves,
		ctx:         ctx,
		logger:      klog.FromContext(ctx),
		resultCount: make([]int, len(on.Claims)),
		work:        budget.Work{Ctx: ctx, Cost: cel.NewBudget(a.CostBudget), StepLimit: a.StepBudget, Attempt: a.Attempt},
		available:   availability.New(a.Features, on.Node, a.State, on.Allocated, len(on.Inventory.Candidates)),
	}
	if improves != nil {
		s.work = budget.Work{Ctx: ctx, Cost: cel.NewBudget(improves.limits.Cost), StepLimit: improves.limits.Steps, Attempt: budget.PreferencesOf(a.Attempt)}
	}
	s.evaluator = selection.Evaluator{Context: ctx, Features: a.Features, Node: on.Node, Compiled: a.Selectors, Work: &s.work}
	if !a.Unbounded {
		s.evaluator.ReadSets = a
	}
	s.traces = s.logger.V(7).Enabled()
	s.symmetry.search, s.lookahead.search = s, s
	for _, claim := range on.Claims {
		if err := (setup{s}).addClaim(claim); err != nil {
			return nil, err
		}
	}
	s.lookahead.findWhatCannotFail()
	s.makeRoom()
	return s, nil
}

// makeRoom spares the stacks from growing while the search goes on.
func (s *search) makeRoom() {
	requests, devices := 0, 0
	for _, claim := range s.requests {
		requests += len(claim)
		for _, all := range claim {
			devices += all.least().Count
		}
	}
	s.solution.decisions, s.solution.choices = make([]*request, 0, requests), make([]choice, 0, devices)
	s.available.Expect(devices)
}

// run looks for the first solution.
func (s *search) run() (bool, error) {
	result, err := s.first()
	if result != found || err != nil {
		return false, err
	}
	s.logger.V(6).Info("Allocation result found")
	return true, nil
}

// solutions yields the solutions in their order: what is yielded is that of the search, until it goes on. What ends
// it before the last one is its error.
func (s *search) solutions() iter.Seq[*solution] {
	return func(yield func(*solution) bool) {
		s.yield = yield
		_, s.err = s.first()
	}
}

// first meets all requests, unless the node has too many devices for a claim that wants all of them. Nothing is
// evaluated then.
func (s *search) first() (outcome, error) {
	if (reason{s}).overLimit() != "" {
		return none, nil
	}
	return s.nextRequest(0, 0)
}

// nextRequest meets the requests of the claims from the given one on. If that
// fails, everything that was taken is given back.
func (s *search) nextRequest(claim, request int) (outcome, error) {
	if err := s.step(); err != nil {
		return none, err
	}
	switch {
	case s.isNotBetter():
		return none, nil
	case claim == len(s.Claims) && s.yield != nil && s.yield(&s.solution):
		return none, nil
	case claim == len(s.Claims):
		return found, nil
	case request == len(s.requests[claim]):
		result, err := s.nextRequest(claim+1, 0)
		if result == tooMany {
			// The limit is one of a claim. Other devices for this claim may lead to
			// another alternative in the next.
			result = none
		}
		return result, err
	}
	if s.lookahead.restIsInfeasible(claim, request) {
		return none, nil
	}
	result := tooMany
	for _, r := range s.requests[claim][request] {
		tried, err := s.try(place{claim: claim, request: request}, r)
		switch {
		case err != nil || tried == found:
			return tried, err
		case tried == none:
			result = none
		}
	}
	return result, nil
}

// step counts, and looks whether the search was cancelled or had enough steps.
func (s *search) step() error {
	s.work.Steps++
	if err := s.work.Cancelled(); err != nil {
		return err
	}
	if len(s.celConstraints) == 0 && s.improves == nil {
		return nil
	}
	switch over := s.work.Exceeded(); {
	case over == nil:
		return nil
	case s.improves != nil:
		return s.preferenceBudgetError(*over)
	default:
		return s.busyWith().budgetError(*over, nil)
	}
}

// try meets a request with one of its alternatives.
func (s *search) try(p place, r *request) (outcome, error) {
	s.solution.decisions = append(s.solution.decisions, r)
	satisfied, err := r.decide()
	if err != nil || !satisfied {
		s.solution.decisions = s.solution.decisions[:len(s.solution.decisions)-1]
		return none, err
	}
	result, err := s.nextDevice(p, r)
	if result != found {
		s.solution.decisions = s.solution.decisions[:len(s.solution.decisions)-1]
		r.undecide(len(r.decides))
	}
	return result, err
}

// nextDevice finds the devices of the request from p on.
func (s *search) nextDevice(p place, r *request) (outcome, error) {
	switch {
	case s.isNotBetter():
		return none, nil
	case r.WantsAll() && len(r.all) == 0:
		// "All" of nothing is not what anybody wants.
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

// takeNextOfAll takes the one device that is next. The order does not matter for
// "all", so there is no other choice.
func (s *search) takeNextOfAll(p place, r *request) (outcome, error) {
	c := r.all[p.device]
	if s.available.InUse(p.claim, &r.Request, c) {
		return none, nil
	}
	if _, taken, err := s.take(p.claim, r, c); err != nil || !taken {
		return none, err
	}
	return s.proceed(p, r, c)
}

// takeAny tries the devices from p.from on, one of each symmetry class.
func (s *search) takeAny(p place, r *request) (outcome, error) {
	var failed failedClasses
	for position := r.next(p.from); position < len(s.Inventory.Candidates); position = r.next(position + 1) {
		if failed.has(position) {
			s.symmetry.passedOver++
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
				// What this request gets makes no difference. To try it could only fail.
				return none, nil
			}
		}
		if taken || refusedBy != nil {
			failed.add(&s.symmetry, p, position)
		}
	}
	return none, nil
}

// isEligible decides in the order of cost: no selector is evaluated for a device
// that can't be had.
func (s *search) isEligible(claim int, r *request, c *inventory.Candidate) (bool, error) {
	if s.available.InUse(claim, &r.Request, c) {
		return false, nil
	}
	selected, err := r.isSelected(c)
	if err != nil || !selected {
		return false, err
	}
	if r.IsSimple(c) {
		return true, nil
	}
	return s.available.HasCapacity(&r.Request, c)
}

// proceed goes on after c was taken at p, and gives it back if that fails.
func (s *search) proceed(p place, r *request, c *inventory.Candidate) (outcome, error) {
	p.device++
	p.from = c.Position + 1
	result, err := s.nextDevice(p, r)
	if result != found {
		s.giveBack()
	}
	return result, err
}

// take takes a selectable device that is not in use if nothing speaks against it. If a constraint
// does, it is returned. Unless the device was taken nothing has changed.
func (s *search) take(claim int, r *request, c *inventory.Candidate) (refusedBy constraint.Constraint, taken bool, err error) {
	var reserved availability.Reservation
	if !r.IsSimple(c) {
		usable := s.available.IsUsable(&r.Request, c)
		if usable && !r.AdminAccess() {
			reserved, usable = s.available.Reserve(c)
		}
		if !usable {
			return nil, false, nil
		}
	}
	for i, constraint := range r.constraints {
		if added, err := constraint.Add(&r.Request, c); err != nil || !added {
			removeFrom(r.constraints[:i], c)
			s.available.Release(c, reserved)
			return constraint, false, err
		}
	}
	if marked, err := s.mark(claim, r, c, &reserved); err != nil || !marked {
		removeFrom(r.constraints, c)
		s.available.Release(c, reserved)
		return nil, false, err
	}
	s.solution.choices = append(s.solution.choices, choice{claim: claim, request: r, Candidate: c, Reservation: reserved})
	s.resultCount[claim]++
	if s.traces {
		s.logger.V(7).Info("Device taken", "device", c.ID, "request", r.Name)
	}
	return nil, true, nil
}

// mark marks the device as taken if it has enough capacity.
func (s *search) mark(claim int, r *request, c *inventory.Candidate, reserved *availability.Reservation) (bool, error) {
	if !r.IsSimple(c) {
		if enough, err := s.available.HasCapacity(&r.Request, c); err != nil || !enough {
			return false, err
		}
	}
	err := s.available.Mark(claim, &r.Request, c, reserved)
	return err == nil, err
}

// giveBack undoes the last take.
func (s *search) giveBack() {
	s.lookahead.backtracked = true
	last := s.solution.choices[len(s.solution.choices)-1]
	s.solution.choices = s.solution.choices[:len(s.solution.choices)-1]
	s.resultCount[last.claim]--
	s.available.Unmark(last.Candidate)
	removeFrom(last.request.constraints, last.Candidate)
	s.available.Release(last.Candidate, last.Reservation)
	if s.traces {
		s.logger.V(7).Info("Device given back", "device", last.ID, "request", last.request.Name)
	}
}

func removeFrom(constraints []constraint.Constraint, c *inventory.Candidate) {
	for i := len(constraints) - 1; i >= 0; i-- {
		constraints[i].Remove(c)
	}
}

// withinLimit reports whether no choice of alternatives gives the claim too many
// results.
func (s *search) withinLimit(requests []alternatives) bool {
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

// isPredictable reports whether nothing may fail for the requests of a claim that only the search itself finds out. Their
// selectors are known then.
func (s *search) isPredictable(claim int, requests []*request) bool {
	return !s.Planner.Unbounded && s.withinLimit(s.requests[claim]) && s.lookahead.speculate(requests...)
}

// mayFailBetween reports whether a CEL constraint of a claim may fail that becomes complete between two of its requests, with
// the device last.
func (s *search) mayFailBetween(claim, from, to int, last *inventory.Candidate) bool {
	return slices.ContainsFunc(s.celConstraints, func(o *celConstraint) bool {
		return o.claimIndex == claim && o.last >= from && o.first <= to && o.mayFail(last)
	})
}

// isConstrained reports whether the search has CEL constraints.
func (s *search) isConstrained() bool { return len(s.celConstraints) > 0 }

// stats counts the work of the search.
func (s *search) stats() answer.Stats {
	stats := answer.Stats{Steps: s.work.Steps, Cost: int64(min(s.work.Cost.Spent(), math.MaxInt64))}
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
