// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// definition is a CEL constraint of a claim, found and compiled.
type definition struct {
	name       string
	expression *device.Expression
	key        expressionKey
}

func resolveDefinitions(a *Allocator, claim *resourceapi.ResourceClaim) (map[int]*definition, error) {
	resolved, err := v1alpha1.Resolve(claim, a.classes)
	if err != nil {
		return nil, err
	}
	result := make(map[int]*definition, len(resolved))
	for _, constraint := range resolved {
		expression, err := a.environment.Compile(constraint.Expression, constraint.Variables...)
		if err != nil {
			return nil, fmt.Errorf("claim %s, constraint %s (%s): %w", klog.KObj(claim), constraint.Name, constraint.Source, err)
		}
		result[constraint.Index] = &definition{
			name:       constraint.Name,
			expression: expression,
			key:        newExpressionKey(a.environment, &constraint),
		}
	}
	return result, nil
}

// CheckConstraints finds out, without looking at any device, whether the CEL
// constraints of the claims are defined and compile.
func (a *Allocator) CheckConstraints(claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		if _, err := a.resolved(claim).definitions(); err != nil {
			return err
		}
	}
	return nil
}
