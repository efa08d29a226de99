// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
)

// Improvement configures a search for a solution that is better than the incumbent.
type Improvement struct {
	Incumbent *Solution
	// Earlier holds the preferences before Next. A better solution must not lower their values.
	Earlier []Valued
	// Next is the preference to improve.
	Next Valued
	// Limits is the budget that is left for the search.
	Limits budget.Budget
	// SetUp adds the objectives of a claim to the search. It is called once for each claim, after the constraints of the claim.
	SetUp func(s *Search, claim *resourceapi.ResourceClaim, preferences []plan.Preference, all []Alternatives) error
}

// Valued is a preference with its value for the incumbent. Claim is the index of the claim, and Preference the index in the
// claim's preferences.
type Valued struct {
	Claim, Preference int
	Value             int64
}

// Objective is a preference that a search improves by branch and bound.
type Objective interface {
	// Target returns the condition on the value of the preference.
	Target() *Goal
	// IsComplete reports whether the set of the objective has all its devices.
	IsComplete() bool
}

// Goal is the condition of an objective: the value of a complete set must be above Floor.
type Goal struct {
	Floor int64
	// Value is the value of the last complete set whose value was above Floor.
	Value int64
}

// isNotBetter reports whether the set of the objective is complete and its value is not above the floor. Devices of other
// requests can't change the value.
func (s *Search) isNotBetter() bool {
	return s.Objective != nil && s.Objective.IsComplete() && s.Objective.Target().Value <= s.Objective.Target().Floor
}

// preferenceBudgetError returns the error for an exhausted budget of the preferences. The allocator's callers never get it.
func (s *Search) preferenceBudgetError(of budget.Limit) *budget.Error {
	return budget.NewError(of, s.Claims[s.Improves.Next.Claim], s.Node.Name, nil)
}

// PreferenceError is the error of a preference whose expression failed.
type PreferenceError struct{ error }

// Unwrap returns the cause.
func (e PreferenceError) Unwrap() error { return e.error }
