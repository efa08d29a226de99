// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"slices"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/inventory"
)

func (c *CELConstraint) costError(err error) error {
	return c.budgetError(budget.Limit{Unit: budget.Cost, Value: c.search.Planner.CostBudget}, err)
}

func (c *CELConstraint) budgetError(of budget.Limit, err error) *budget.Error {
	result := budget.NewError(of, c.claim, c.search.Node.Name, err)
	result.Constraint = c.Name
	result.SetsLeft, result.Sets = budget.Undecided(c.combinations())
	return result
}

// currentConstraint returns the CEL constraint whose set the search was completing. This is the last constraint with a partial,
// nonempty set, or else the first constraint that lacks devices. If all sets are complete, it is the last constraint, because
// the search would next try another set for it.
func (s *Search) currentConstraint() *CELConstraint {
	var partial, open *CELConstraint
	for _, c := range s.celConstraints {
		switch {
		case c.undecided == 0 && len(c.members) == c.wanted:
		case len(c.members) > 0:
			partial = c
		case open == nil:
			open = c
		}
	}
	switch {
	case partial != nil:
		return partial
	case open != nil:
		return open
	default:
		return s.celConstraints[len(s.celConstraints)-1]
	}
}

// combinations returns a combination for each covered request, in order. For a prioritized list it uses the alternative that
// the search currently tries, or the first alternative if the search has not reached the request.
func (c *CELConstraint) combinations() []budget.Combination {
	var result []budget.Combination
	members := c.members
	for i, all := range c.search.Requests[c.claimIndex] {
		r := c.search.Solution.tried(c.search.Requests, c.claimIndex, i)
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

func (c *CELConstraint) isCovered(r *Request) bool {
	return slices.ContainsFunc(c.covered, func(all Alternatives) bool { return slices.Contains(all, r) })
}

// combination counts the devices that the request could get and marks the members, which it has already got.
func (s *Search) combination(r *Request, members []*inventory.Candidate) budget.Combination {
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

// isFree reports whether the request could get the device if no other request existed. If a selector fails, it returns false.
func (s *Search) isFree(r *Request, c *inventory.Candidate) bool {
	if s.Available.Allocated().Has(c.Position) && !r.AdminAccess() {
		return false
	}
	if isSelected, err := r.isSelected(c); err != nil || !isSelected || !s.Available.IsUsable(&r.Request, c) {
		return false
	}
	enough, err := s.Available.HasCapacity(&r.Request, c)
	return enough && err == nil
}
