// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
)

// Improvement describes a search for a better solution than the incumbent.
type Improvement struct {
	Incumbent *Solution
	// Earlier holds the preferences before Next, with values that must not fall.
	Earlier []Valued
	// Next is the preference to improve.
	Next Valued
	// Limits is the remaining budget.
	Limits budget.Budget
	// SetUp adds the objectives of a claim to the search. It is called once for each claim, after the constraints of the claim.
	SetUp func(s *Search, claim *resourceapi.ResourceClaim, preferences []plan.Preference, all []Alternatives) error
}

// Valued is a preference with the value of the incumbent. Claim is the index of the claim, Preference the index among the
// preferences of the claim.
type Valued struct {
	Claim, Preference int
	Value             int64
}

// Objective is a preference in branch and bound.
type Objective interface {
	// Target returns the condition on the value.
	Target() *Goal
	// IsComplete reports whether the set of the objective has all its devices.
	IsComplete() bool
}

// Goal is the condition of an objective: the value of a complete set is above the floor.
type Goal struct {
	Floor int64
	// Value is the value of the last complete set above the floor.
	Value int64
}

// isNotBetter reports whether the set of the objective is complete but not better than the floor. Devices of other requests can't
// improve it.
func (s *Search) isNotBetter() bool {
	return s.Objective != nil && s.Objective.IsComplete() && s.Objective.Target().Value <= s.Objective.Target().Floor
}

// preferenceBudgetError returns the error for an exhausted budget for preferences. Callers of the allocator never see it.
func (s *Search) preferenceBudgetError(of budget.Limit) *budget.Error {
	return budget.NewError(of, s.Claims[s.Improves.Next.Claim], s.Node.Name, nil)
}

// PreferenceError is the failure of the expression of a preference.
type PreferenceError struct{ error }

// Unwrap returns the cause.
func (e PreferenceError) Unwrap() error { return e.error }
