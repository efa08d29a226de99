// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/inventory"
)

// constraint is a condition on the devices of one or more requests of a claim.
// Only devices of covered requests are added. Devices are removed in the reverse
// order in which they were added, and after that the constraint is as it was
// before: the search relies on it.
type constraint interface {
	// add adds a device to the set if that may still lead to a set that satisfies
	// the constraint. If not, or after an error, the set is unchanged.
	add(r *request, c *inventory.Candidate) (bool, error)
	// remove undoes the last successful add.
	remove(c *inventory.Candidate)
	// rejection is the error of a request for all devices when add refuses one of
	// them: there is no other choice. nil if another choice of earlier requests may
	// help.
	rejection(r *request, c *inventory.Candidate) error
}

// addConstraints sets up the constraints of a claim for its requests.
func (s *search) addConstraints(claim *resourceapi.ResourceClaim, requests []alternatives) error {
	definitions, err := s.allocator.definitions.of(s.allocator, claim)
	if err != nil {
		return err
	}
	for i := range claim.Spec.Devices.Constraints {
		api := &claim.Spec.Devices.Constraints[i]
		var c constraint
		if d := definitions[i]; d != nil {
			c = s.newCELConstraint(claim, d, api, requests)
		} else if c, err = s.newAttributeConstraint(claim, i); err != nil {
			return err
		}
		for _, alternatives := range requests {
			for _, r := range alternatives {
				if covers(api, r) {
					r.constraints = append(r.constraints, c)
				}
			}
		}
	}
	return nil
}

func covers(api *resourceapi.DeviceConstraint, r *request) bool {
	return len(api.Requests) == 0 || r.isNamed(api.Requests)
}

func (s *search) newAttributeConstraint(claim *resourceapi.ResourceClaim, index int) (constraint, error) {
	api := &claim.Spec.Devices.Constraints[index]
	switch lists := s.allocator.features.ListTypeAttributes; {
	case api.MatchAttribute != nil && lists:
		return &matchAttributeList{attributeConstraint: attributeConstraint{s, *api.MatchAttribute}}, nil
	case api.MatchAttribute != nil:
		return &matchAttribute{attributeConstraint: attributeConstraint{s, *api.MatchAttribute}}, nil
	case api.DistinctAttribute != nil && lists:
		return &distinctAttributeList{attributeConstraint: attributeConstraint{s, *api.DistinctAttribute}}, nil
	case api.DistinctAttribute != nil:
		return &distinctAttribute{attributeConstraint: attributeConstraint{s, *api.DistinctAttribute}}, nil
	default:
		return nil, fmt.Errorf("claim %s, constraint #%d: empty constraint (unsupported constraint type?)", klog.KObj(claim), index)
	}
}
