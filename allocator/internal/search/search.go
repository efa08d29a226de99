// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

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

// Search is the state of one Allocate call. One goroutine works with it.
type Search struct {
	plan.OnNode
	demands
	taken
	cutting
	preference
	Ctx    context.Context
	logger klog.Logger
	// traces: each step is logged.
	traces bool
	// Evaluator evaluates selectors and derived attributes.
	Evaluator selection.Evaluator
	Work      budget.Work
	// yield is called for each solution, and is false if no more are wanted. If it is nil, the search ends with the first one.
	yield func(*Solution) bool
	// Err is the error that ended [Search.Solutions].
	Err error
}

// demands are read from the claims when the search is set up.
type demands struct {
	// Requests has the requests of each claim, in order.
	Requests       [][]Alternatives
	CELConstraints []*CELConstraint
	Groups         []*group
}

// taken changes with each device that the search takes or gives back.
type taken struct {
	// Available is what is left of the candidates.
	Available *availability.Availability
	// Solution has what the search took so far. When the search ends without success it is empty.
	Solution Solution
	// ResultCount counts the choices of each claim.
	ResultCount []int
}

// cutting has the means to leave out branches.
type cutting struct {
	Lookahead lookahead
	Symmetry  symmetry
	// TellsApart: devices that look the same are not symmetric, because it matters which others are left.
	TellsApart bool
	// accepts is the condition of the caller on complete sets, nil if there is none.
	accepts *acceptance
}

// preference is nil unless the search is for a better solution.
type preference struct {
	Improves  *Improvement
	Objective Objective
}

// Place is where the search stands: which device of which request of which claim
// is to be found next, and the first position at which it may be. Devices of one
// request are taken in ascending order, so that every set is tried once and not
// in all its orders.
type Place struct {
	claim, request, Device int
	From                   int
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

// New checks claims and requests in their order and sets up the state, for any solution, or for one that is
// better than another.
func New(ctx context.Context, on plan.OnNode, improves *Improvement) (*Search, error) {
	a := on.Planner
	s := &Search{
		OnNode:     on,
		preference: preference{Improves: improves},
		Ctx:        ctx,
		logger:     klog.FromContext(ctx),
		Work:       budget.Work{Ctx: ctx, Cost: cel.NewBudget(a.CostBudget), StepLimit: a.StepBudget, Attempt: a.Attempt},
		taken: taken{
			Available:   availability.New(a.Features, on.Node, a.State, on.Allocated, len(on.Inventory.Candidates)),
			ResultCount: make([]int, len(on.Claims)),
		},
	}
	if improves != nil {
		s.Work = budget.Work{Ctx: ctx, Cost: cel.NewBudget(improves.Limits.Cost), StepLimit: improves.Limits.Steps, Attempt: budget.PreferencesOf(a.Attempt)}
	}
	s.Evaluator = selection.Evaluator{Context: ctx, Features: a.Features, Node: on.Node, Compiled: a.Selectors, Work: &s.Work}
	if !a.Unbounded {
		s.Evaluator.ReadSets = a
	}
	s.traces = s.logger.V(7).Enabled()
	s.Symmetry.search, s.Lookahead.search = s, s
	for _, claim := range on.Claims {
		if err := (setup{s}).addClaim(claim); err != nil {
			return nil, err
		}
	}
	s.Lookahead.findWhatCannotFail()
	s.makeRoom()
	return s, nil
}

// makeRoom spares the stacks from growing while the search goes on.
func (s *Search) makeRoom() {
	requests, devices := 0, 0
	for _, claim := range s.Requests {
		requests += len(claim)
		for _, all := range claim {
			devices += all.least().Count
		}
	}
	s.Solution.Decisions, s.Solution.Choices = make([]*Request, 0, requests), make([]Choice, 0, devices)
	s.Available.Expect(devices)
}

// Run looks for the first solution.
func (s *Search) Run() (bool, error) {
	result, err := s.first()
	if result != found || err != nil {
		return false, err
	}
	s.logger.V(6).Info("Allocation result found")
	return true, nil
}

// Solutions yields the solutions in their order: what is yielded is that of the search, until it goes on. What ends
// it before the last one is its error.
func (s *Search) Solutions() iter.Seq[*Solution] {
	return func(yield func(*Solution) bool) {
		s.yield = yield
		_, s.Err = s.first()
	}
}

// first meets all requests, unless the node has too many devices for a claim that wants all of them. Nothing is
// evaluated then.
func (s *Search) first() (outcome, error) {
	if (reason{s}).overLimit() != "" {
		return none, nil
	}
	return s.nextRequest(0, 0)
}

// nextRequest meets the requests of the claims from the given one on. If that
// fails, everything that was taken is given back.
func (s *Search) nextRequest(claim, request int) (outcome, error) {
	if err := s.step(); err != nil {
		return none, err
	}
	switch {
	case s.isNotBetter():
		return none, nil
	case claim == len(s.Claims) && s.yield != nil && s.yield(&s.Solution):
		return none, nil
	case claim == len(s.Claims):
		return found, nil
	case request == len(s.Requests[claim]):
		result, err := s.nextRequest(claim+1, 0)
		if result == tooMany {
			// The limit is one of a claim. Other devices for this claim may lead to
			// another alternative in the next.
			result = none
		}
		return result, err
	}
	if s.Lookahead.restIsInfeasible(claim, request) {
		return none, nil
	}
	result := tooMany
	for _, r := range s.Requests[claim][request] {
		tried, err := s.try(Place{claim: claim, request: request}, r)
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
func (s *Search) step() error {
	s.Work.Steps++
	if err := s.Work.Cancelled(); err != nil {
		return err
	}
	if len(s.CELConstraints) == 0 && s.Improves == nil {
		return nil
	}
	switch over := s.Work.Exceeded(); {
	case over == nil:
		return nil
	case s.Improves != nil:
		return s.preferenceBudgetError(*over)
	default:
		return s.busyWith().budgetError(*over, nil)
	}
}

// try meets a request with one of its alternatives.
func (s *Search) try(p Place, r *Request) (outcome, error) {
	s.Solution.Decisions = append(s.Solution.Decisions, r)
	satisfied, err := r.Decide()
	if err != nil || !satisfied {
		s.Solution.Decisions = s.Solution.Decisions[:len(s.Solution.Decisions)-1]
		return none, err
	}
	result, err := s.nextDevice(p, r)
	if result != found {
		s.Solution.Decisions = s.Solution.Decisions[:len(s.Solution.Decisions)-1]
		r.Undecide(len(r.Decides))
	}
	return result, err
}

// nextDevice finds the devices of the request from p on.
func (s *Search) nextDevice(p Place, r *Request) (outcome, error) {
	switch {
	case s.isNotBetter():
		return none, nil
	case r.WantsAll() && len(r.all) == 0:
		// "All" of nothing is not what anybody wants.
		return none, nil
	case p.Device == r.Count:
		return s.nextRequest(p.claim, p.request+1)
	case r.Count-p.Device > s.Planner.MaxResults-s.ResultCount[p.claim]:
		return tooMany, nil
	}
	if p.Device > 0 {
		if err := s.step(); err != nil {
			return none, err
		}
	}
	switch {
	case r.WantsAll():
		return s.takeNextOfAll(p, r)
	case !r.isPruned() && s.Lookahead.isInfeasible(p, r):
		return none, nil
	default:
		return s.takeAny(p, r)
	}
}

// takeNextOfAll takes the one device that is next. The order does not matter for
// "all", so there is no other choice.
func (s *Search) takeNextOfAll(p Place, r *Request) (outcome, error) {
	c := r.all[p.Device]
	if s.Available.InUse(p.claim, &r.Request, c) {
		return none, nil
	}
	if _, taken, err := s.Take(p.claim, r, c); err != nil || !taken {
		return none, err
	}
	return s.proceed(p, r, c)
}

// takeAny tries the devices from p.from on, one of each symmetry class.
func (s *Search) takeAny(p Place, r *Request) (outcome, error) {
	var failed failedClasses
	for position := r.Next(p.From); position < len(s.Inventory.Candidates); position = r.Next(position + 1) {
		if failed.has(position) {
			s.Symmetry.passedOver++
			continue
		}
		c := s.Inventory.Candidates[position]
		eligible, err := s.IsEligible(p.claim, r, c)
		if err != nil {
			return none, err
		}
		if !eligible {
			continue
		}
		refusedBy, taken, err := s.Take(p.claim, r, c)
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
			failed.add(&s.Symmetry, p, position)
		}
	}
	return none, nil
}

// IsEligible decides in the order of cost: no selector is evaluated for a device
// that can't be had.
func (s *Search) IsEligible(claim int, r *Request, c *inventory.Candidate) (bool, error) {
	if s.Available.InUse(claim, &r.Request, c) {
		return false, nil
	}
	selected, err := r.IsSelected(c)
	if err != nil || !selected {
		return false, err
	}
	if r.IsSimple(c) {
		return true, nil
	}
	return s.Available.HasCapacity(&r.Request, c)
}

// proceed goes on after c was taken at p, and gives it back if that fails.
func (s *Search) proceed(p Place, r *Request, c *inventory.Candidate) (outcome, error) {
	p.Device++
	p.From = c.Position + 1
	result, err := s.nextDevice(p, r)
	if result != found {
		s.giveBack()
	}
	return result, err
}

// Take takes a selectable device that is not in use if nothing speaks against it. If a constraint
// does, it is returned. Unless the device was taken nothing has changed.
func (s *Search) Take(claim int, r *Request, c *inventory.Candidate) (refusedBy constraint.Constraint, taken bool, err error) {
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
	for i, constraint := range r.Constraints {
		if added, err := constraint.Add(&r.Request, c); err != nil || !added {
			removeFrom(r.Constraints[:i], c)
			s.Available.Release(c, reserved)
			return constraint, false, err
		}
	}
	if marked, err := s.mark(claim, r, c, &reserved); err != nil || !marked {
		removeFrom(r.Constraints, c)
		s.Available.Release(c, reserved)
		return nil, false, err
	}
	s.Solution.Choices = append(s.Solution.Choices, Choice{Claim: claim, Request: r, Candidate: c, Reservation: reserved})
	s.ResultCount[claim]++
	if s.traces {
		s.logger.V(7).Info("Device taken", "device", c.ID, "request", r.Name)
	}
	return nil, true, nil
}

// mark marks the device as taken if it has enough capacity.
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
	s.Lookahead.backtracked = true
	last := s.Solution.Choices[len(s.Solution.Choices)-1]
	s.Solution.Choices = s.Solution.Choices[:len(s.Solution.Choices)-1]
	s.ResultCount[last.Claim]--
	s.Available.Unmark(last.Candidate)
	removeFrom(last.Request.Constraints, last.Candidate)
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

// withinLimit reports whether no choice of alternatives gives the claim too many
// results.
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

// IsPredictable reports whether nothing may fail for the requests of a claim that only the search itself finds out. Their
// selectors are known then.
func (s *Search) IsPredictable(claim int, requests []*Request) bool {
	return !s.Planner.Unbounded && s.withinLimit(s.Requests[claim]) && s.Lookahead.speculate(requests...)
}

// MayFailBetween reports whether a CEL constraint of a claim may fail that becomes complete between two of its requests, with
// the device last.
func (s *Search) MayFailBetween(claim, from, to int, last *inventory.Candidate) bool {
	return slices.ContainsFunc(s.CELConstraints, func(o *CELConstraint) bool {
		return o.claimIndex == claim && o.last >= from && o.first <= to && o.mayFail(last)
	})
}

// IsConstrained reports whether the search has CEL constraints.
func (s *Search) IsConstrained() bool { return len(s.CELConstraints) > 0 }

// Stats counts the work of the search.
func (s *Search) Stats() answer.Stats {
	stats := answer.Stats{Steps: s.Work.Steps, Cost: int64(min(s.Work.Cost.Spent(), math.MaxInt64))}
	for _, constraint := range s.CELConstraints {
		stats.Evaluations += constraint.Evaluations
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
