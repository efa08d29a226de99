// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/inventory"
)

func (c *celConstraint) costError(err error) error {
	return c.budgetError(budget.Limit{Unit: budget.Cost, Value: c.search.Planner.CostBudget}, err)
}

func (c *celConstraint) budgetError(of budget.Limit, err error) *budget.Error {
	result := budget.NewError(of, c.claim, c.search.Node.Name, err)
	result.Constraint = c.Name
	result.SetsLeft, result.Sets = budget.Undecided(c.combinations())
	return result
}

// busyWith is the CEL constraint that the search is about to find devices for: the
// last of those that have some and lack some, else the first of those that lack
// some. If all sets are complete it is the last, for another set of it is what would
// be tried next.
func (s *search) busyWith() *celConstraint {
	var begun, open *celConstraint
	for _, c := range s.celConstraints {
		switch {
		case c.undecided == 0 && len(c.members) == c.wanted:
		case len(c.members) > 0:
			begun = c
		case open == nil:
			open = c
		}
	}
	switch {
	case begun != nil:
		return begun
	case open != nil:
		return open
	default:
		return s.celConstraints[len(s.celConstraints)-1]
	}
}

// combinations are those of the requests that the constraint covers, in order. Of a
// prioritized list it is the alternative being tried, or the first if the search did
// not get there.
func (c *celConstraint) combinations() []budget.Combination {
	var result []budget.Combination
	members := c.members
	for i, all := range c.search.requests[c.claimIndex] {
		r := c.search.solution.tried(c.search.requests, c.claimIndex, i)
		if r == nil {
			r = all[0]
		}
		if !c.isCovered(r) {
			continue
		}
		n := min(r.Count, len(members))
		result = append(result, c.search.combination(r, members[:n]))
		members = members[n:]
	}
	return result
}

func (c *celConstraint) isCovered(r *request) bool {
	return slices.ContainsFunc(c.covered, func(all alternatives) bool { return slices.Contains(all, r) })
}

// combination counts the devices for a request that has the members.
func (s *search) combination(r *request, members []*inventory.Candidate) budget.Combination {
	candidates := s.Inventory.Candidates
	if r.WantsAll() {
		candidates = r.all
	}
	result := budget.Combination{Count: r.Count}
	for _, c := range candidates {
		switch {
		case slices.Contains(members, c):
			result.Chosen = append(result.Chosen, result.Free)
			result.Free++
		case r.WantsAll() || s.isFree(r, c):
			result.Free++
		}
	}
	return result
}

// isFree reports whether the request could have the device if it were alone. A device
// on which a selector fails it can't have.
func (s *search) isFree(r *request, c *inventory.Candidate) bool {
	if s.available.Allocated().Has(c.Position) && !r.AdminAccess() {
		return false
	}
	if isSelected, err := r.isSelected(c); err != nil || !isSelected || !s.available.IsUsable(&r.Request, c) {
		return false
	}
	enough, err := s.available.HasCapacity(&r.Request, c)
	return enough && err == nil
}
