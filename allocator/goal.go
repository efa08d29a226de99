// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"slices"
)

// A preference says which of the sets that satisfy every constraint is to be taken: one with the
// greatest value, and of those the first in the order of the search. So a search for any set comes
// first, and knows nothing of preferences. If it found one, another search looks for a better one,
// with one more condition: the value is above that of the best set so far. Package bound knows
// what the value can still become, so that this condition cuts as a constraint does. Each set
// that the search comes to is better than the last, and it goes on from there with a narrower
// condition. Since sets are met in order, and equal ones don't count, the last is the first of
// the best.
//
// If there are several preferences, one such search follows the other. What was found before
// holds as a condition: the values of earlier preferences may not fall.
//
// A prioritized list is a preference of its own, and stronger: alternatives remain as they were.
//
// These searches have a budget of their own, for all preferences together. When it is used up,
// the best set so far is the answer. So it is when something fails that has nothing to do with
// preferences, a selector for a device that the first search did not come to: a claim that can be
// met is not refused for it.

// goal is the condition that a preference is: the value of a complete set is above floor.
type goal struct {
	floor int64
	// value is that of the last complete set for which that was so.
	value int64
}

// improvement is what the search for a better set begins with.
type improvement struct {
	// than is the search whose solution is to be improved.
	than *search
	// goals are the preferences before the given one with the values that may not fall.
	goals []valued
	// next is the place of the preference among those of the claims.
	next placeOfPreference
	// limits are what is left of the budget.
	limits goalLimits
}

// placeOfPreference is the place of a claim and of a preference among its own.
type placeOfPreference struct{ claim, preference int }

// valued is a preference with the value of the best set.
type valued struct {
	placeOfPreference
	value int64
}

// goalLimits is a budget.
type goalLimits struct {
	cost  uint64
	steps int64
}

// PreferenceOutcome tells how good a set is that was chosen by preferences.
type PreferenceOutcome string

const (
	// PreferenceBest means that no set is better.
	PreferenceBest PreferenceOutcome = "best"
	// PreferenceBestFound means that the search ended before, usually because the budget for
	// preferences was used up: sets that nobody looked at may be better.
	PreferenceBestFound PreferenceOutcome = "best found"
)

// prefer improves the solution that the search found, as the preferences of the claims want it.
func (s *search) prefer() error {
	limits := goalLimits{cost: s.allocator.preferenceCost, steps: s.allocator.preferenceSteps}
	var goals []valued
	best := s
	for claim := range s.claims {
		definitions, err := s.allocator.resolved(s.claims[claim]).definitions()
		if err != nil {
			return err
		}
		for i := range definitions.preferences {
			at := placeOfPreference{claim, i}
			n, err := newSearchFor(s.ctx, s.allocator, s.node, s.inventory, s.claims, s.allocated, &improvement{best, goals, at, limits})
			if err != nil {
				return err
			}
			s.preferring = append(s.preferring, n)
			value, ended, err := n.maximize()
			if n.better != nil {
				best, s.best = n, n
			}
			if value != nil {
				p := &definitions.preferences[i]
				s.values = append(s.values, PreferenceValue{Claim: claim, Name: p.name, Value: *value})
			}
			switch {
			case err != nil:
				return err
			case ended != nil:
				over, isBudget := errors.AsType[*BudgetError](ended)
				s.outcome, s.isUnrepeatable = PreferenceBestFound, isBudget && over.Attempt
				return nil
			case value != nil:
				s.outcome = PreferenceBest
				goals = append(goals, valued{at, *value})
			}
			limits.cost -= min(limits.cost, n.work.cost.Spent())
			limits.steps -= min(limits.steps, n.work.steps)
		}
	}
	return nil
}

// maximize looks for better sets until there is none. The value is that of the best, or of the best
// so far, nil if the preference is about no device. ended is what ended the search before. The error is one of
// preferences, or the context has ended.
func (s *search) maximize() (value *int64, ended, err error) {
	for _, c := range s.improves.than.found().choices {
		if c.claim == s.goal.claimIndex && s.goal.covers(c.request) {
			s.goal.members = append(s.goal.members, c.Candidate)
		}
	}
	if len(s.goal.members) == 0 {
		return nil, nil, nil
	}
	s.goal.goal.floor, err = s.goal.value()
	if err != nil {
		err = s.goal.evaluationError(err)
	}
	s.goal.members = s.goal.members[:0]
	if err == nil {
		value = &s.goal.goal.floor
		_, err = s.nextRequest(0, 0)
	}
	switch {
	case err == nil:
		return value, nil, nil
	case s.work.Cancelled() != nil, s.goalFails && !isBudget(err):
		return nil, nil, err
	default:
		return value, err, nil
	}
}

func isBudget(err error) bool {
	_, is := errors.AsType[*BudgetError](err)
	return is
}

// improved notes a better solution, and demands one that is better still.
func (s *search) improved() {
	s.better = &solution{slices.Clone(s.solution.decisions), slices.Clone(s.solution.choices)}
	g := s.goal.goal
	g.floor = g.value
	for _, p := range s.goal.pruners {
		p.raise()
	}
}

// isNotBetter tells whether the set that the preference is about is complete, and was found before:
// devices of other requests don't make it better.
func (s *search) isNotBetter() bool {
	return s.goal != nil && s.goal.isComplete() && s.goal.goal.value <= s.goal.goal.floor
}

// preferred is the search with the best solution.
func (s *search) preferred() *search {
	if s.best != nil {
		return s.best
	}
	return s
}

// found is the solution, or the better one.
func (s *search) found() *solution {
	if s.better != nil {
		return s.better
	}
	return &s.solution
}

// covers tells whether a request that was met is one of those covered.
func (c *celConstraint) covers(r *request) bool {
	return slices.ContainsFunc(c.covered, func(all alternatives) bool {
		return slices.ContainsFunc(all, func(covered *request) bool { return covered.Order == r.Order && covered.alternative == r.alternative })
	})
}

// value evaluates the preference for the complete set.
func (c *celConstraint) value() (int64, error) {
	c.evaluations++
	return c.expression.Value(c.search.ctx, c.memberValues(), c.search.work.cost)
}

// isReached tells whether the value of the complete set is above the floor.
func (c *celConstraint) isReached() (bool, error) {
	value, err := c.value()
	if err != nil || value <= c.goal.floor {
		return false, err
	}
	c.goal.value = value
	return true, nil
}

// raise has the bounds know the new floor.
func (p *pruner) raise() {
	if p.bounds != nil {
		p.bounds.Exceed(p.constraint.goal.floor)
		p.fixpoint = [len(p.fixpoint)]bool{}
	}
}
