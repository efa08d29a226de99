// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
)

// Improvement has the start of a search for a better solution.
type Improvement struct {
	Incumbent *Solution
	// Kept are the preferences before the next one, with the values that may not fall.
	Kept []Valued
	// Next is the preference to improve.
	Next Valued
	// Limits are what is left of the budget.
	Limits budget.Budget
	// SetUp adds the objectives of a claim to the search. It is called once for each claim, after its constraints were added.
	SetUp func(s *Search, claim *resourceapi.ResourceClaim, preferences []plan.Preference, all []Alternatives) error
}

// Valued is a preference, given by the place of the claim and by its own among those of the claim, with the value of
// the incumbent.
type Valued struct {
	Claim, Preference int
	Value             int64
}

// Objective is a preference in branch and bound.
type Objective interface {
	// Target returns the condition on the value.
	Target() *Goal
	// IsComplete reports whether the set has all devices that it is about.
	IsComplete() bool
}

// Goal is the condition of an objective: the value of a complete set is above the floor.
type Goal struct {
	Floor int64
	// Value is that of the last complete set for which that was so.
	Value int64
}

// isNotBetter reports whether the set that the objective is about is complete, and was found before:
// devices of other requests don't make it better.
func (s *Search) isNotBetter() bool {
	return s.Objective != nil && s.Objective.IsComplete() && s.Objective.Target().Value <= s.Objective.Target().Floor
}

// preferenceBudgetError says that a budget for preferences is used up. It is not returned to callers.
func (s *Search) preferenceBudgetError(of budget.Limit) *budget.Error {
	return budget.NewError(of, s.Claims[s.Improves.Next.Claim], s.Node.Name, nil)
}

// PreferenceError is that an expression of a preference failed.
type PreferenceError struct{ error }

// Unwrap returns the error.
func (e PreferenceError) Unwrap() error { return e.error }
