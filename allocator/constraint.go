// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
)

// constraint is a condition on the devices of one or more requests of a claim.
// Only devices of covered requests are added. Devices are removed in the reverse
// order in which they were added, and after that the constraint is as it was
// before: the search relies on it.
type constraint interface {
	// add adds a device to the set if that may still lead to a set that satisfies
	// the constraint. If not, or after an error, the set is unchanged.
	add(c *candidate) (bool, error)
	// remove undoes the last successful add.
	remove(c *candidate)
	// rejection is the error of a request for all devices when add refuses one of
	// them: there is no other choice. nil if another choice of earlier requests may
	// help.
	rejection(r *request, c *candidate) error
}

// addConstraints sets up the constraints of a claim for its requests.
func (s *search) addConstraints(claim *resourceapi.ResourceClaim, requests []*request) error {
	definitions, err := s.definitions.of(s.Allocator, claim)
	if err != nil {
		return err
	}
	for i := range claim.Spec.Devices.Constraints {
		api := &claim.Spec.Devices.Constraints[i]
		covered := slices.Collect(func(yield func(*request) bool) {
			for _, r := range requests {
				if covers(api, r) && !yield(r) {
					return
				}
			}
		})
		c, err := s.newConstraint(claim, i, definitions, covered)
		if err != nil {
			return err
		}
		for _, r := range covered {
			r.constraints = append(r.constraints, c)
		}
	}
	return nil
}

func covers(api *resourceapi.DeviceConstraint, r *request) bool {
	return len(api.Requests) == 0 || slices.Contains(api.Requests, r.name)
}

func (s *search) newConstraint(claim *resourceapi.ResourceClaim, index int, definitions map[int]*definition, covered []*request) (constraint, error) {
	api := &claim.Spec.Devices.Constraints[index]
	switch {
	case definitions[index] != nil:
		return s.newCELConstraint(claim, definitions[index], covered), nil
	case api.MatchAttribute != nil:
		return &matchAttribute{name: *api.MatchAttribute}, s.refuseConstraint(claim, index)
	case api.DistinctAttribute != nil:
		return &distinctAttribute{name: *api.DistinctAttribute}, s.refuseConstraint(claim, index)
	default:
		return nil, fmt.Errorf("claim %s, constraint #%d: empty constraint (unsupported constraint type?)", klog.KObj(claim), index)
	}
}

// attributeRejection is the error for all constraints that compare attributes.
func attributeRejection(r *request, c *candidate) error {
	return r.errorf("cannot add device %s because a claim constraint would not be satisfied", c.id)
}
