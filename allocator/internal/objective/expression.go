// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
)

// newFunction returns the objective function of a preference, and adds it as a constraint to the covered requests.
func newFunction(s *search.Search, claim *resourceapi.ResourceClaim, p *plan.Preference, all []search.Alternatives) (objectiveFunction, error) {
	if p.Policy == nil {
		c := s.NewCELConstraint(claim, p.Definition, p.API, all)
		c.Goal = &search.Goal{}
		search.Cover(all, p.API, c)
		return expression{c}, nil
	}
	return newPolicyObjective(s, p, all)
}

// expression is the objective function of an expression that returns an int.
type expression struct{ *search.CELConstraint }

func (e expression) Target() *search.Goal { return e.Goal }

func (e expression) isAbout(chosen *search.Choice) bool { return e.Covers(chosen) }

// isBest returns false, because the expression may fail for a set that the search has not tried.
func (e expression) isBest(int64) bool { return false }

func (e expression) valueOf(members []*inventory.Candidate) (int64, error) { return e.ValueOf(members) }

func (e expression) most() int64 { return e.Most() }

func (e expression) raise() { e.Raise() }
