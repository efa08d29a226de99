// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/plan"
)

// PolicyValues tells what policies say of the devices that a claim has on a node: what
// [Allocator.AllocateWithDetails] would tell of them if it chose these devices now. So the Allocator must
// take them for free. What a policy thought of them when they were chosen may have been something
// else, for others were in use.
//
// Preferences that are expressions are left out: they depend on nothing but the devices. The error is one
// that Allocate would return for the claim on any node, or one of the devices is not there.
func (a *Allocator) PolicyValues(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim) ([]PreferenceValue, error) {
	definitions, err := a.planner.Resolved(claim).Definitions()
	if err != nil || !slices.ContainsFunc(definitions.Preferences, func(p plan.Preference) bool { return p.Policy != nil }) {
		return nil, err
	}
	on, err := a.planner.PlanFor([]*resourceapi.ResourceClaim{claim}).On(node)
	if err != nil {
		return nil, err
	}
	s, err := newSearch(ctx, on, nil)
	if err != nil {
		return nil, err
	}
	if err := s.hasChosen(claim); err != nil {
		return nil, err
	}
	var values []PreferenceValue
	for i := range definitions.Preferences {
		p := &definitions.Preferences[i]
		if p.Policy == nil || !s.solution.isAbout(0, p) {
			continue
		}
		limits := Budget{Cost: a.planner.PreferenceCost, Steps: a.planner.PreferenceSteps}
		n, err := newSearch(ctx, on, &improvement{incumbent: &s.solution, next: valued{preference: i}, limits: limits})
		if err != nil {
			return nil, err
		}
		chosen := n.improves.chosenFor(n.objective)
		if len(chosen) == 0 {
			continue
		}
		value, err := n.objective.valueOf(chosen)
		if err != nil {
			return nil, err
		}
		values = append(values, PreferenceValue{Preference: i, Name: p.Name, Value: value, Losses: lossesOf(n.objective, value)})
	}
	return values, nil
}
