// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
)

// PolicyValues returns the values of a claim's policies for the devices allocated to the claim on a node.
func PolicyValues(ctx context.Context, p *plan.Planner, node *v1.Node, claim *resourceapi.ResourceClaim) ([]answer.Value, error) {
	definitions, err := p.Resolved(claim).Definitions()
	if err != nil || !slices.ContainsFunc(definitions.Preferences, func(p plan.Preference) bool { return p.Policy != nil }) {
		return nil, err
	}
	on, err := p.PlanFor([]*resourceapi.ResourceClaim{claim}).On(node)
	if err != nil {
		return nil, err
	}
	s, err := search.New(ctx, on, nil)
	if err != nil {
		return nil, err
	}
	if err := s.HasChosen(claim); err != nil {
		return nil, err
	}
	var values []answer.Value
	for i := range definitions.Preferences {
		preference := &definitions.Preferences[i]
		if preference.Policy == nil || !s.Solution.IsAbout(0, preference) {
			continue
		}
		limits := budget.Budget{Cost: p.PreferenceCost, Steps: p.PreferenceSteps}
		n, err := newBetter(ctx, on, search.Improvement{Incumbent: &s.Solution, Next: search.Valued{Preference: i}, Limits: limits})
		if err != nil {
			return nil, err
		}
		chosen := chosenFor(n.Improves, n.of)
		if len(chosen) == 0 {
			continue
		}
		value, err := n.of.valueOf(chosen)
		if err != nil {
			return nil, err
		}
		values = append(values, answer.Value{Preference: i, Name: preference.Name, Value: value, Losses: lossesOf(n.of, value)})
	}
	return values, nil
}
