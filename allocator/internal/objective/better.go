// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"errors"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
)

// objectiveFunction is the objective function of a preference.
type objectiveFunction interface {
	search.Objective
	// isAbout reports whether the preference covers the chosen device.
	isAbout(c *search.Choice) bool
	// valueOf returns the value of a complete set. The objective function must have no members.
	valueOf(members []*inventory.Candidate) (int64, error)
	// isBest reports whether no set has a greater value.
	isBest(value int64) bool
	// most returns an upper bound of the values of all sets, or [math.MaxInt64] if no bound is known.
	most() int64
	// raise passes the new floor of the goal to the bounds.
	raise()
}

// betterSearch is a search for solutions to which one preference gives a greater value than to the incumbent.
type betterSearch struct {
	*search.Search
	of objectiveFunction
}

func newBetter(ctx context.Context, on plan.OnNode, improves search.Improvement) (*betterSearch, error) {
	b := &betterSearch{}
	improves.SetUp = b.setUp
	s, err := search.New(ctx, on, &improves)
	b.Search = s
	return b, err
}

// maximize searches until no better solution exists. value is the value of the best solution, or nil if the preference covers
// no chosen device. ended is the error that ended the search early. err means that a preference failed or the context ended.
func (b *betterSearch) maximize() (value *int64, ended, err error) {
	members := chosenFor(b.Improves, b.of)
	if len(members) == 0 {
		return nil, nil, nil
	}
	of := b.of.Target()
	of.Floor, err = b.of.valueOf(members)
	if err == nil {
		value = &of.Floor
		b.setFloor(of.Floor)
		err = b.improve()
	}
	ofPreference, fails := errors.AsType[search.PreferenceError](err)
	switch {
	case err == nil:
		return value, nil, nil
	case fails:
		return nil, nil, ofPreference.Unwrap()
	case b.Work.Cancelled() != nil:
		return nil, nil, err
	default:
		return value, err, nil
	}
}

// tryShare determines how many of the remaining steps tryBound may use: one of tryShare equal parts.
const tryShare = 5

// improve searches until no better solution exists. It returns the error that ended the search early, or nil.
func (b *betterSearch) improve() error {
	of := b.of.Target()
	if b.of.isBest(of.Floor) {
		return nil
	}
	// Floor may be the smallest int64, so compare Floor+1, which can't overflow because Floor is less than most.
	if most := b.of.most(); most < math.MaxInt64 && of.Floor < most && of.Floor+1 < most && b.tryBound(most) {
		return nil
	}
	return b.climb()
}

// tryBound searches for a set with the greatest possible value, because climbing to it could take a thousand improvements. It
// returns true if it finds such a set and no error ended the search. This set is the first of the best sets. If it finds no
// such set, it restores the floor.
func (b *betterSearch) tryBound(most int64) (isBest bool) {
	of, limit := b.of.Target(), b.Work.StepLimit
	floor := of.Floor
	defer func() { b.Work.StepLimit = limit }()
	b.Work.StepLimit = b.Work.Steps + (limit-b.Work.Steps)/tryShare
	b.setFloor(most - 1)
	err := b.climb()
	if of.Floor < most {
		b.setFloor(floor)
		return false
	}
	return err == nil
}

// climb makes each better solution the incumbent and raises the floor, until no better solution exists.
func (b *betterSearch) climb() error {
	for range b.Solutions() {
		b.Improves.Incumbent = &search.Solution{Decisions: slices.Clone(b.Solution.Decisions), Choices: slices.Clone(b.Solution.Choices)}
		of := b.of.Target()
		b.setFloor(of.Value)
		if b.of.isBest(of.Floor) {
			break
		}
	}
	return b.Err
}

// setFloor sets the floor of the goal, so that the search finds only sets with values above the floor.
func (b *betterSearch) setFloor(floor int64) {
	b.of.Target().Floor = floor
	b.of.raise()
}

// chosenFor returns the devices of the incumbent that the preference covers.
func chosenFor(m *search.Improvement, o objectiveFunction) []*inventory.Candidate {
	var chosen []*inventory.Candidate
	for i := range m.Incumbent.Choices {
		if o.isAbout(&m.Incumbent.Choices[i]) {
			chosen = append(chosen, m.Incumbent.Choices[i].Candidate)
		}
	}
	return chosen
}

// setUp adds a claim's objectives: for the preference to improve, and for earlier preferences whose values must not fall.
func (b *betterSearch) setUp(s *search.Search, claim *resourceapi.ResourceClaim, preferences []plan.Preference, all []search.Alternatives) error {
	improves, index := s.Improves, len(s.Requests)-1
	for _, known := range improves.Earlier {
		if known.Claim != index || known.Value == math.MinInt64 {
			// The value is the smallest int64 and can't fall, so the preference needs no condition.
			continue
		}
		f, err := newFunction(s, claim, &preferences[known.Preference], all)
		if err != nil {
			return err
		}
		f.Target().Floor = known.Value - 1
	}
	if improves.Next.Claim != index {
		return nil
	}
	of, err := newFunction(s, claim, &preferences[improves.Next.Preference], all)
	if err != nil {
		return err
	}
	b.of, s.Objective = of, of
	return nil
}
