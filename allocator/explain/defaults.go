// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// constraintPosition is the index of a claim and the index of a constraint in the claim.
type constraintPosition struct{ claim, constraint int }

// withDefaults returns the problem with the default constraints of the classes written into the claims, so that conditions can
// be removed one by one. labels maps the position of such a constraint to its name in messages.
func (p *Problem) withDefaults() (out *Problem, labels map[constraintPosition]string, err error) {
	out = p.with(func(*Problem) {})
	out.Options = append(slices.Clone(p.Options), allocator.WithoutDefaultConstraints())
	out.Claims = slices.Clone(p.Claims)
	labels = map[constraintPosition]string{}
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
			labels[constraintPosition{i, len(devices.Constraints)}] = resolved[j].Label()
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
