// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/inventory"
)

// PolicyValues tells what policies say of the devices that a claim has on a node: what
// [Allocator.AllocateWithDetails] would tell of them if it chose these devices now. So the Allocator must
// take them for free. What a policy thought of them when they were chosen may have been something
// else, for others were in use.
//
// Preferences that are expressions are left out: they depend on nothing but the devices. The error is one
// that Allocate would return for the claim on any node, or one of the devices is not there.
func (a *Allocator) PolicyValues(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim) ([]PreferenceValue, error) {
	definitions, err := a.resolved(claim).definitions()
	if err != nil || !slices.ContainsFunc(definitions.preferences, func(p preference) bool { return p.policy != "" }) {
		return nil, err
	}
	on, err := a.planFor([]*resourceapi.ResourceClaim{claim}).on(node)
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
	for i := range definitions.preferences {
		p := &definitions.preferences[i]
		if p.policy == "" || !p.isAbout(0, &s.solution) {
			continue
		}
		limits := goalLimits{a.preferenceCost, a.preferenceSteps}
		n, err := newSearch(ctx, on, &improvement{incumbent: &s.solution, next: placeOfPreference{0, i}, limits: limits})
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
		values = append(values, PreferenceValue{Preference: i, Name: p.name, Value: value, Losses: lossesOf(n.objective, value)})
	}
	return values, nil
}

// hasChosen takes what the claim has for the solution of the search.
func (s *search) hasChosen(claim *resourceapi.ResourceClaim) error {
	var results []resourceapi.DeviceRequestAllocationResult
	if claim.Status.Allocation != nil {
		results = claim.Status.Allocation.Devices.Results
	}
	for _, all := range s.requests[0] {
		met := all[0]
		for _, r := range all {
			if slices.ContainsFunc(results, func(d resourceapi.DeviceRequestAllocationResult) bool { return d.Request == r.Name }) {
				met = r
				break
			}
		}
		s.solution.decisions = append(s.solution.decisions, met)
		for _, d := range results {
			if d.Request != met.Name {
				continue
			}
			id := structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
			at := slices.IndexFunc(s.inventory.Candidates, func(c *inventory.Candidate) bool { return c.ID == id })
			if at < 0 {
				return met.Errorf("device %s, which it has, is not among those of node %s", id, s.node.Name)
			}
			s.solution.choices = append(s.solution.choices, choice{request: met, Candidate: s.inventory.Candidates[at]})
		}
	}
	return nil
}
