// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// place is that of a constraint: which claim, and which of its constraints.
type place struct{ claim, constraint int }

// writtenOut is the problem with the constraints that classes have hold by default as constraints
// of the claims, so that conditions can be left out one by one. labels are what messages call
// them.
func (p *Problem) writtenOut() (out *Problem, labels map[place]string, err error) {
	out = p.with(func(*Problem) {})
	out.Options = append(slices.Clone(p.Options), allocator.WithoutDefaultConstraints())
	out.Claims = slices.Clone(p.Claims)
	labels = map[place]string{}
	for i, claim := range p.Claims {
		resolved, err := v1alpha1.Resolve(claim, p.Classes)
		if err != nil {
			return nil, nil, err
		}
		for j := range resolved {
			if !resolved[j].Default {
				continue
			}
			if out.Claims[i] == claim {
				out.Claims[i] = claim.DeepCopy()
			}
			devices := &out.Claims[i].Spec.Devices
			labels[place{i, len(devices.Constraints)}] = resolved[j].Label()
			if err := writeOut(devices, &resolved[j]); err != nil {
				return nil, nil, err
			}
		}
	}
	return out, labels, nil
}

func writeOut(devices *resourceapi.DeviceClaim, constraint *v1alpha1.Constraint) error {
	reference, err := define(devices, v1alpha1.CELDeviceConstraint{
		Expression: constraint.Expression, Variables: constraint.Variables, FailurePolicy: constraint.FailurePolicy,
	})
	if err != nil {
		return err
	}
	devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: constraint.Requests, MatchAttribute: reference})
	return nil
}
