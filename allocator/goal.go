// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"math"
	"math/big"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
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

// objective is a preference in the search for a better set.
type objective interface {
	constraint.Constraint
	target() *goal
	// isAbout tells whether the preference is about a device that was chosen.
	isAbout(c *choice) bool
	// isComplete tells whether the set has all devices that it is about.
	isComplete() bool
	// valueOf is the value of a complete set, while there are no members.
	valueOf(members []*inventory.Candidate) (int64, error)
	// isBest tells whether no set has a greater value.
	isBest(value int64) bool
	// mayProbe tells whether it may help to ask for much better sets, most is what no set exceeds, or
	// [math.MaxInt64] if that is not known.
	mayProbe() bool
	most() int64
	// raise has what cuts know that the floor is another.
	raise()
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
			if !definitions.preferences[i].isAbout(claim, best.found()) {
				continue
			}
			at, weight := placeOfPreference{claim, i}, definitions.preferences[i].stepWeight()
			n, err := newSearchFor(s.ctx, s.allocator, s.node, s.inventory, s.claims, s.allocated,
				&improvement{best, goals, at, goalLimits{limits.cost, limits.steps / weight}})
			if over, is := errors.AsType[*BudgetError](err); is && over.Attempt {
				s.outcome, s.isUnrepeatable = PreferenceBestFound, true
				return nil
			}
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
				s.values = append(s.values, PreferenceValue{Claim: claim, Preference: i, Name: p.name, Value: *value, Losses: lossesOf(n.goal, *value)})
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
			limits.steps -= min(limits.steps, n.work.steps*weight)
		}
	}
	return nil
}

// keepWholeSteps is how many steps of the budget one takes with KeepWhole. On nodes of 64 devices it counts
// thousands of sets, which takes as long as eight steps with an expression.
const keepWholeSteps = 8

// stepWeight is how many steps of the budget one takes.
func (p *preference) stepWeight() int64 {
	if p.policy != "" {
		return keepWholeSteps
	}
	return 1
}

// isAbout tells whether the preference of a claim is about a device that was chosen. To set up a search
// for nothing takes time, and a class may have it set up for each alternative.
func (p *preference) isAbout(claim int, chosen *solution) bool {
	return slices.ContainsFunc(chosen.choices, func(c choice) bool { return c.claim == claim && constraint.Covers(p.api, &c.request.Request) })
}

// maximize looks for better sets until there is none. The value is that of the best, or of the best
// so far, nil if the preference is about no device. ended is what ended the search before. The error is one of
// preferences, or the context has ended.
func (s *search) maximize() (value *int64, ended, err error) {
	members := s.improves.chosenFor(s.goal)
	if len(members) == 0 {
		return nil, nil, nil
	}
	aim := s.goal.target()
	aim.floor, err = s.goal.valueOf(members)
	if err == nil {
		value = &aim.floor
		s.goal.raise()
	}
	if err == nil && !s.goal.isBest(aim.floor) {
		err = s.improve()
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

// chosenFor are the devices of the solution to be improved that a preference is about.
func (m *improvement) chosenFor(o objective) []*inventory.Candidate {
	var chosen []*inventory.Candidate
	choices := m.than.found().choices
	for i := range choices {
		if o.isAbout(&choices[i]) {
			chosen = append(chosen, choices[i].Candidate)
		}
	}
	return chosen
}

// lossesOf are nil for an expression.
func lossesOf(o objective, value int64) []ShapeLoss {
	if w, is := o.(*wholeness); is {
		return w.lost(value)
	}
	return nil
}

// preferenceBudgetError says that a budget for preferences is used up. Nobody is told but the search
// itself.
func (s *search) preferenceBudgetError(of limit) *BudgetError {
	claim := s.claims[s.improves.next.claim]
	return &BudgetError{
		Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, Node: s.node.Name,
		Unit: of.unit, Limit: of.value, Attempt: of.attempt, SetsLeft: new(big.Int), Sets: new(big.Int),
	}
}

func isBudget(err error) bool {
	_, is := errors.AsType[*BudgetError](err)
	return is
}

// improved notes a better solution, and demands one that is better still, if there can be one. A probe
// ends with it.
func (s *search) improved() (outcome, error) {
	s.better = &solution{slices.Clone(s.solution.decisions), slices.Clone(s.solution.choices)}
	aim := s.goal.target()
	s.demand(aim.value)
	switch {
	case s.probing:
		return none, errReached
	case s.goal.isBest(aim.floor):
		return found, nil
	default:
		return none, nil
	}
}

// isNotBetter tells whether the set that the preference is about is complete, and was found before:
// devices of other requests don't make it better.
func (s *search) isNotBetter() bool {
	return s.goal != nil && s.goal.isComplete() && s.goal.target().value <= s.goal.target().floor
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

// isBest is false: nobody writes an expression whose value can't be exceeded.
func (c *celConstraint) isBest(int64) bool { return false }

// mayProbe is true where a set is complete with the last device of all: where others follow, going from set to
// set may meet an error behind one that a probe passes over.
func (c *celConstraint) mayProbe() bool {
	requests := c.search.requests
	return !c.search.allocator.unbounded && c.claimIndex == len(requests)-1 && c.last == len(requests[c.claimIndex])-1
}

func (c *celConstraint) most() int64 { return c.pruner.most() }

func (c *celConstraint) raise() {
	for _, p := range c.pruners {
		p.raise()
	}
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

// most is what the value of no set exceeds, before a device was chosen.
func (p *pruner) most() int64 {
	if !p.isPrepared() {
		return math.MaxInt64
	}
	domain := bitset.New(p.branch.devices())
	for i, r := range p.covered {
		p.branch.joinFree(domain, p.eligible.At(i), r)
	}
	return p.bounds.Most(bound.Partial{Chosen: p.none, Domain: domain, Left: p.size})
}

// raise has the bounds know the new floor.
func (p *pruner) raise() {
	if p.bounds != nil {
		p.bounds.Exceed(p.constraint.goal.floor)
		p.fixpoint = [len(p.fixpoint)]bool{}
	}
}
