// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
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

// function is the objective function of a preference.
type function interface {
	objective
	// isAbout reports whether the preference is about a device that was chosen.
	isAbout(c *choice) bool
	// valueOf returns the value of a complete set, while there are no members.
	valueOf(members []*inventory.Candidate) (int64, error)
	// isBest reports whether no set has a greater value.
	isBest(value int64) bool
	// most returns a value that no set exceeds, [math.MaxInt64] if the bounds know none.
	most() int64
	// raise tells the bounds that the floor is another.
	raise()
}

// better is a search for solutions that one preference values more than the incumbent.
type better struct {
	*search
	of function
}

func newBetter(ctx context.Context, on plan.OnNode, improves improvement) (*better, error) {
	b := &better{}
	improves.setUp = b.setUp
	s, err := newSearch(ctx, on, &improves)
	b.search = s
	return b, err
}

// maximize looks for better solutions until there is none. The value is that of the incumbent, nil if the preference
// is about no device. ended is what ended the search before. The error is one of preferences, or the context has ended.
func (b *better) maximize() (value *int64, ended, err error) {
	members := chosenFor(b.improves, b.of)
	if len(members) == 0 {
		return nil, nil, nil
	}
	of := b.of.Target()
	of.floor, err = b.of.valueOf(members)
	if err == nil {
		value = &of.floor
		b.setFloor(of.floor)
		err = b.improve()
	}
	ofPreference, fails := errors.AsType[preferenceError](err)
	switch {
	case err == nil:
		return value, nil, nil
	case fails:
		return nil, nil, ofPreference.Unwrap()
	case b.work.Cancelled() != nil:
		return nil, nil, err
	default:
		return value, err, nil
	}
}

// tryShare is the part of the steps that looking for the greatest value that bounds permit may take.
const tryShare = 5

// improve looks for better solutions until there is none. The error is what ended that before.
func (b *better) improve() error {
	of := b.of.Target()
	if b.of.isBest(of.floor) {
		return nil
	}
	// The floor may be as small as an int64 can be, and then nothing is below it.
	if most := b.of.most(); most < math.MaxInt64 && of.floor < most && of.floor+1 < most && b.tryBound(most) {
		return nil
	}
	return b.climb()
}

// tryBound asks for a set with the value that bounds say none exceeds. Where there is one, going from a set to the next
// better one could take a thousand steps. What is found is the first such set, and no set is better if nothing else
// has ended the search for one. Otherwise nothing has changed.
func (b *better) tryBound(most int64) (isBest bool) {
	of, limit := b.of.Target(), b.work.StepLimit
	floor := of.floor
	defer func() { b.work.StepLimit = limit }()
	b.work.StepLimit = b.work.Steps + (limit-b.work.Steps)/tryShare
	b.setFloor(most - 1)
	err := b.climb()
	if of.floor < most {
		b.setFloor(floor)
		return false
	}
	return err == nil
}

// climb goes from each better solution to the next.
func (b *better) climb() error {
	for range b.solutions() {
		b.improves.incumbent = &solution{slices.Clone(b.solution.decisions), slices.Clone(b.solution.choices)}
		of := b.of.Target()
		b.setFloor(of.value)
		if b.of.isBest(of.floor) {
			break
		}
	}
	return b.err
}

// setFloor has the search look for a set whose value is above the floor.
func (b *better) setFloor(floor int64) {
	b.of.Target().floor = floor
	b.of.raise()
}

// chosenFor are the devices of the incumbent that a preference is about.
func chosenFor(m *improvement, o function) []*inventory.Candidate {
	var chosen []*inventory.Candidate
	for i := range m.incumbent.choices {
		if o.isAbout(&m.incumbent.choices[i]) {
			chosen = append(chosen, m.incumbent.choices[i].Candidate)
		}
	}
	return chosen
}

// setUp adds the objectives of a claim: those of preferences whose values may not fall, and that of the preference to improve.
func (b *better) setUp(s *search, claim *resourceapi.ResourceClaim, preferences []plan.Preference, all []alternatives) error {
	improves, index := s.improves, len(s.requests)-1
	for _, known := range improves.kept {
		if known.claim != index || known.value == math.MinInt64 {
			// No value is below the smallest.
			continue
		}
		f, err := newFunction(s, claim, &preferences[known.preference], all)
		if err != nil {
			return err
		}
		f.Target().floor = known.value - 1
	}
	if improves.next.claim != index {
		return nil
	}
	of, err := newFunction(s, claim, &preferences[improves.next.preference], all)
	if err != nil {
		return err
	}
	b.of, s.objective = of, of
	return nil
}

// newFunction returns the objective of a preference, and adds its condition to the requests that the preference covers.
func newFunction(s *search, claim *resourceapi.ResourceClaim, p *plan.Preference, all []alternatives) (function, error) {
	if p.Policy == nil {
		c := s.newCELConstraint(claim, p.Definition, p.API, all)
		c.goal = &goal{}
		cover(all, p.API, c)
		return expression{c}, nil
	}
	return newPolicyObjective(s, p, all)
}

// expression is the objective of an expression that returns an int.
type expression struct{ *celConstraint }

func (e expression) Target() *goal { return e.goal }

func (e expression) isAbout(chosen *choice) bool { return e.covers(chosen) }

// isBest is false: bounds don't tell that no set fails.
func (e expression) isBest(int64) bool { return false }
