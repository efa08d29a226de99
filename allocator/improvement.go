// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
)

// improvement is what a search for a better solution begins with.
type improvement struct {
	incumbent *solution
	// kept are the preferences before the next one, with the values that may not fall.
	kept []valued
	// next is the preference to improve.
	next valued
	// limits are what is left of the budget.
	limits budget.Budget
	// setUp adds the objectives of a claim to the search. It is called once for each claim, after its constraints were added.
	setUp func(s *search, claim *resourceapi.ResourceClaim, preferences []plan.Preference, all []alternatives) error
}

// valued is a preference, given by the place of the claim and by its own among those of the claim, with the value of
// the incumbent.
type valued struct {
	claim, preference int
	value             int64
}

// objective is a preference in branch and bound.
type objective interface {
	// Target returns the condition on the value.
	Target() *goal
	// IsComplete reports whether the set has all devices that it is about.
	IsComplete() bool
}

// goal is the condition of an objective: the value of a complete set is above the floor.
type goal struct {
	floor int64
	// value is that of the last complete set for which that was so.
	value int64
}

// isNotBetter reports whether the set that the objective is about is complete, and was found before:
// devices of other requests don't make it better.
func (s *search) isNotBetter() bool {
	return s.objective != nil && s.objective.IsComplete() && s.objective.Target().value <= s.objective.Target().floor
}

// preferenceBudgetError says that a budget for preferences is used up. It is not returned to callers.
func (s *search) preferenceBudgetError(of budget.Limit) *budget.Error {
	return budget.NewError(of, s.Claims[s.improves.next.claim], s.Node.Name, nil)
}

// preferenceError is that an expression of a preference failed.
type preferenceError struct{ error }

// Unwrap returns the error.
func (e preferenceError) Unwrap() error { return e.error }
