// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"math"
	"slices"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// This file implements branch and bound. A preference is an objective: of the sets that satisfy every
// constraint, one with the greatest value is taken, and of those the first in the order of the search.
//
// The first search knows nothing of preferences. Its solution is the incumbent of another search, which has one
// more condition: the value is above the floor, which is that of the incumbent. Package bound knows what the
// value can still become, so this condition cuts as a constraint does. Each solution is the next incumbent and
// raises the floor, and the search goes on from there. Solutions come in order, and equal ones don't count, so
// the last one is the first of the best.
//
// If there are several preferences, one such search follows the other, and the values of the preferences before
// may not fall. A prioritized list is a preference of its own, and stronger: the alternatives that the first
// search decided for remain.
//
// These searches have a budget of their own, for all preferences together. When it is used up, the incumbent is
// the answer. So it is when something fails that has nothing to do with preferences, such as a selector for a
// device that the first search did not come to: a claim that can be met is not refused for it.

// objective is a preference in branch and bound.
type objective interface {
	constraint.Constraint
	target() *goal
	// isAbout reports whether the preference is about a device that was chosen.
	isAbout(c *choice) bool
	// isComplete reports whether the set has all devices that it is about.
	isComplete() bool
	// valueOf is the value of a complete set, while there are no members.
	valueOf(members []*inventory.Candidate) (int64, error)
	// isBest reports whether no set has a greater value.
	isBest(value int64) bool
	// most is what the bounds say that no set exceeds, [math.MaxInt64] if they don't.
	most() int64
	// raise has the bounds know that the floor is another.
	raise()
}

// goal is the condition of an objective: the value of a complete set is above the floor.
type goal struct {
	floor int64
	// value is that of the last complete set for which that was so.
	value int64
}

// improvement is what a search for a better solution begins with.
type improvement struct {
	incumbent *solution
	// kept are the preferences before the next one, with the values that may not fall.
	kept []valued
	// next is the preference to improve.
	next valued
	// limits are what is left of the budget.
	limits budget.Budget
}

// valued is a preference, given by the place of the claim and by its own among those of the claim, with the value of
// the incumbent.
type valued struct {
	claim, preference int
	value             int64
}

// preferred is what preferences made of the first solution.
type preferred struct {
	// incumbent is the best solution.
	incumbent *solution
	outcome   answer.Outcome
	// values are those of the incumbent.
	values []answer.Value
	// spent is what the searches for better solutions did.
	spent answer.Stats
	// unrepeatable is why the outcome depends on what else was done in the attempt, nil if it does not.
	unrepeatable error
}

// prefer improves the solution that the search found, as the preferences of the claims want it.
func (s *search) prefer() error {
	p := &s.preferred
	p.incumbent = &s.solution
	limits := budget.Budget{Cost: s.Planner.PreferenceCost, Steps: s.Planner.PreferenceSteps}
	var kept []valued
	for claim := range s.Claims {
		definitions, err := s.Planner.Resolved(s.Claims[claim]).Definitions()
		if err != nil {
			return err
		}
		for i := range definitions.Preferences {
			preference := &definitions.Preferences[i]
			if !p.incumbent.isAbout(claim, preference) {
				continue
			}
			at, weight := valued{claim: claim, preference: i}, preference.StepWeight()
			n, err := newSearch(s.ctx, s.OnNode, &improvement{p.incumbent, kept, at, budget.Budget{Cost: limits.Cost, Steps: limits.Steps / weight}})
			if over, is := errors.AsType[*budget.Error](err); is && over.Attempt {
				p.outcome, p.unrepeatable = answer.BestFound, err
				return nil
			}
			if err != nil {
				return err
			}
			value, ended, err := n.maximize()
			n.work.Charge()
			p.incumbent, p.spent = n.improves.incumbent, answer.Sum(p.spent, n.stats())
			if value != nil {
				p.values = append(p.values, answer.Value{Claim: claim, Preference: i, Name: preference.Name, Value: *value, Losses: lossesOf(n.objective, *value)})
			}
			switch {
			case err != nil:
				return err
			case ended != nil:
				p.outcome = answer.BestFound
				if over, is := errors.AsType[*budget.Error](ended); is && over.Attempt {
					p.unrepeatable = ended
				}
				return nil
			case value != nil:
				p.outcome = answer.Best
				kept = append(kept, valued{claim, i, *value})
			}
			limits.Cost -= min(limits.Cost, n.work.Cost.Spent())
			limits.Steps -= min(limits.Steps, n.work.Steps*weight)
		}
	}
	return nil
}

// isAbout reports whether a preference of a claim is about a device of the solution. A preference of a class may be about an
// alternative that was not chosen, and setting up a search takes time.
func (s *solution) isAbout(claim int, p *plan.Preference) bool {
	return slices.ContainsFunc(s.choices, func(c choice) bool { return c.claim == claim && constraint.Covers(p.API, &c.request.Request) })
}

// maximize looks for better solutions until there is none. The value is that of the incumbent, nil if the preference
// is about no device. ended is what ended the search before. The error is one of preferences, or the context has ended.
func (s *search) maximize() (value *int64, ended, err error) {
	members := s.improves.chosenFor(s.objective)
	if len(members) == 0 {
		return nil, nil, nil
	}
	of := s.objective.target()
	of.floor, err = s.objective.valueOf(members)
	if err == nil {
		value = &of.floor
		s.setFloor(of.floor)
		err = s.improve()
	}
	ofPreference, fails := errors.AsType[preferenceError](err)
	switch {
	case err == nil:
		return value, nil, nil
	case fails:
		return nil, nil, ofPreference.error
	case s.work.Cancelled() != nil:
		return nil, nil, err
	default:
		return value, err, nil
	}
}

// preferenceError is that an expression of a preference failed.
type preferenceError struct{ error }

// Unwrap returns the error.
func (e preferenceError) Unwrap() error { return e.error }

// tryShare is the part of the steps that looking for the greatest value that bounds permit may take.
const tryShare = 5

// improve looks for better solutions until there is none. The error is what ended that before.
func (s *search) improve() error {
	of := s.objective.target()
	if s.objective.isBest(of.floor) {
		return nil
	}
	// The floor may be as small as an int64 can be, and then nothing is below it.
	if most := s.objective.most(); most < math.MaxInt64 && of.floor < most && of.floor+1 < most && s.tryBound(most) {
		return nil
	}
	return s.climb()
}

// tryBound asks for a set with the value that bounds say none exceeds. Where there is one, going from a set to the next
// better one could take a thousand steps. What is found is the first such set, and no set is better if nothing else
// has ended the search for one. Otherwise nothing has changed.
func (s *search) tryBound(most int64) (isBest bool) {
	of, limit := s.objective.target(), s.work.StepLimit
	floor := of.floor
	defer func() { s.work.StepLimit = limit }()
	s.work.StepLimit = s.work.Steps + (limit-s.work.Steps)/tryShare
	s.setFloor(most - 1)
	err := s.climb()
	if of.floor < most {
		s.setFloor(floor)
		return false
	}
	return err == nil
}

// climb goes from each better solution to the next.
func (s *search) climb() error {
	for range s.solutions() {
		s.improves.incumbent = &solution{slices.Clone(s.solution.decisions), slices.Clone(s.solution.choices)}
		of := s.objective.target()
		s.setFloor(of.value)
		if s.objective.isBest(of.floor) {
			break
		}
	}
	return s.err
}

// setFloor has the search look for a set whose value is above the floor.
func (s *search) setFloor(floor int64) {
	s.objective.target().floor = floor
	s.objective.raise()
}

// isNotBetter reports whether the set that the objective is about is complete, and was found before:
// devices of other requests don't make it better.
func (s *search) isNotBetter() bool {
	return s.objective != nil && s.objective.isComplete() && s.objective.target().value <= s.objective.target().floor
}

// chosenFor are the devices of the incumbent that a preference is about.
func (m *improvement) chosenFor(o objective) []*inventory.Candidate {
	var chosen []*inventory.Candidate
	for i := range m.incumbent.choices {
		if o.isAbout(&m.incumbent.choices[i]) {
			chosen = append(chosen, m.incumbent.choices[i].Candidate)
		}
	}
	return chosen
}

// preferenceBudgetError says that a budget for preferences is used up. It is not returned to callers.
func (s *search) preferenceBudgetError(of budget.Limit) *budget.Error {
	return budget.NewError(of, s.Claims[s.improves.next.claim], s.Node.Name, nil)
}

// The rest is the objective of an expression that returns an int.

func (c *celConstraint) target() *goal { return c.goal }

func (c *celConstraint) isAbout(chosen *choice) bool {
	return chosen.claim == c.claimIndex && slices.ContainsFunc(c.covered, func(all alternatives) bool {
		return slices.ContainsFunc(all, func(r *request) bool {
			return r.Order == chosen.request.Order && r.alternative == chosen.request.alternative
		})
	})
}

func (c *celConstraint) valueOf(members []*inventory.Candidate) (int64, error) {
	c.members = append(c.members, members...)
	defer func() { c.members = c.members[:0] }()
	value, err := c.value()
	if err != nil {
		return 0, c.evaluationError(err)
	}
	return value, nil
}

// isBest is false: bounds don't tell that no set fails.
func (c *celConstraint) isBest(int64) bool { return false }

// most is known where a set is complete with the last device of all: where others follow, going from set to
// set may meet an error behind one that [search.tryBound] passes over.
func (c *celConstraint) most() int64 {
	requests := c.search.requests
	if c.search.Planner.Unbounded || c.claimIndex != len(requests)-1 || c.last != len(requests[c.claimIndex])-1 || !c.pruner.isPrepared() {
		return math.MaxInt64
	}
	return c.pruner.most()
}

func (c *celConstraint) raise() {
	for _, p := range c.pruners {
		p.raise()
	}
}

// value evaluates the preference for the complete set.
func (c *celConstraint) value() (int64, error) {
	c.evaluations++
	return c.Expression.Value(c.search.ctx, c.memberValues(), c.search.work.Cost)
}

// isReached reports whether the value of the complete set is above the floor.
func (c *celConstraint) isReached() (bool, error) {
	value, err := c.value()
	if err != nil || value <= c.goal.floor {
		return false, err
	}
	c.goal.value = value
	return true, nil
}

// most is what the value of no set exceeds, before a device was chosen.
func (p *pruner) most() int64 {
	domain := bitset.New(len(p.search.Inventory.Candidates))
	for i, r := range p.covered {
		p.joinFree(domain, p.eligible.At(i), r)
	}
	return p.bounds.Most(bound.Partial{Chosen: p.none, Domain: domain, Left: p.size})
}

// raise has the bounds know the new floor.
func (p *pruner) raise() {
	if p.bounds != nil {
		p.bounds.Exceed(p.constraint.goal.floor)
		clear(p.fixpoint)
	}
}
