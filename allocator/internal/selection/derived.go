// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

// derivation identifies the value of a derived attribute of a device, by whatever
// name and for whichever request.
type derivation struct {
	expression string
	position   int
}

type derivedAttribute = *resourceapi.DeviceAttribute

// Attribute returns the attribute of the device that constraints compare, nil if
// the device does not have it. A derived attribute of the request takes the place
// of one that the device publishes.
func (e *Evaluator) Attribute(r *requests.Request, c *inventory.Candidate, name resourceapi.FullyQualifiedName) (*resourceapi.DeviceAttribute, error) {
	expression, derived := r.Derived[name]
	if !derived {
		return attribute.Published(c, name), nil
	}
	key := derivation{expression, c.Position}
	if known, found := e.derived[key]; found {
		return known, nil
	}
	result, err := e.derive(expression, c)
	if err != nil {
		return nil, fmt.Errorf("claim %s, request %s: derived attribute %s: %w", r.Claim.Name, r.Name, name, err)
	}
	if e.derived == nil {
		e.derived = make(map[derivation]derivedAttribute)
	}
	e.derived[key] = result
	return result, nil
}

func (e *Evaluator) derive(expression string, c *inventory.Candidate) (*resourceapi.DeviceAttribute, error) {
	if err := e.Work.Cancelled(); err != nil {
		return nil, err
	}
	compiled := e.Compiled.GetOrCompileDerivedAttribute(expression)
	if compiled.Error != nil {
		return nil, fmt.Errorf("compile: %w", compiled.Error)
	}
	result, _, err := compiled.EvaluateDerivedAttribute(e.Context, deviceOf(c))
	if err != nil {
		return nil, fmt.Errorf("evaluate on device %s: %w", c.ID, e.explained(err))
	}
	return result, nil
}
