// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection evaluates expressions over one device: selectors of requests and classes ([Selectors]), and derived
// attributes.
//
// The search evaluates an expression only when it reaches a device, because a failure for a device that is not needed must not
// fail the allocation. A verdict does not depend on allocations. The search keeps it, and a [Row] keeps it for other searches
// over the same view. Errors are not kept.
package selection

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/attribute"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/view"
	celcompat "github.com/celset/celset/cel/compat"
)

// Evaluator evaluates expressions over single devices of one node, for one search.
type Evaluator struct {
	Context  context.Context
	Features structured.Features
	Node     *v1.Node
	// Compiled caches compiled expressions.
	Compiled *dracel.Cache
	// Work is asked before each evaluation whether the search was cancelled.
	Work interface {
		// Cancelled returns an error if no further expression must be evaluated.
		Cancelled() error
	}
	// ReadSets returns the attributes that selectors read. If ReadSets is nil, selectors are evaluated for each device.
	ReadSets interface {
		ReadBy(class *resourceapi.DeviceClass, own []resourceapi.DeviceSelector) view.ReadSet
	}
	// Evaluated is the number of devices that selectors were evaluated for.
	Evaluated int64
	derived   map[derivation]derivedAttribute
}

// NeverSelects reports whether no selector can select the device. It is checked before a selector may fail.
func (e *Evaluator) NeverSelects(c *inventory.Candidate) bool {
	return !e.Features.DeviceBindingAndStatus && len(c.Device.BindingConditions) > 0
}

// matches reports whether all selectors are true for the device. owner describes the object with the selectors, for errors.
func (e *Evaluator) matches(owner string, selectors []resourceapi.DeviceSelector, c *inventory.Candidate) (bool, error) {
	for i, selector := range selectors {
		if selector.CEL == nil {
			return false, fmt.Errorf("%s: selector #%d: CEL expression empty (unsupported selector type?)", owner, i)
		}
		expression := e.Compiled.GetOrCompile(selector.CEL.Expression)
		if expression.Error != nil {
			return false, fmt.Errorf("%s: selector #%d: CEL compile error: %w", owner, i, expression.Error)
		}
		matches, _, err := expression.DeviceMatches(e.Context, deviceOf(c))
		if err != nil {
			return false, fmt.Errorf("%s: selector #%d on device %s: CEL runtime error: %w", owner, i, c.ID, e.explained(err))
		}
		if !matches {
			return false, nil
		}
	}
	return true, nil
}

// explained wraps the error of an ended context in addition to err, because an interrupted selector wraps only the cause.
func (e *Evaluator) explained(err error) error {
	if e.Context.Err() != nil && !errors.Is(err, e.Context.Err()) {
		return fmt.Errorf("%w: %w", e.Context.Err(), err)
	}
	return celcompat.EnhanceRuntimeError(err)
}

// deviceOf returns the device in the form that upstream's expressions over one device read.
func deviceOf(c *inventory.Candidate) dracel.Device {
	return dracel.Device{
		Driver:                   c.Slice.Spec.Driver,
		AllowMultipleAllocations: c.Device.AllowMultipleAllocations,
		Attributes:               c.Device.Attributes,
		Capacity:                 c.Device.Capacity,
	}
}

// derivation is the key of a derived attribute's value on a device. The value depends on neither the name nor the request.
type derivation struct {
	expression string
	position   int
}

type derivedAttribute = *resourceapi.DeviceAttribute

// Attribute returns the attribute of the device that constraints compare, or nil. A derived attribute of the request takes
// precedence over a published attribute with the same name.
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
	compiled := celcompat.CompileDerivedAttribute(e.Compiled, expression)
	if compiled.Error != nil {
		return nil, fmt.Errorf("compile: %w", compiled.Error)
	}
	result, err := celcompat.DerivedAttribute(e.Context, compiled, deviceOf(c))
	if err != nil {
		return nil, fmt.Errorf("evaluate on device %s: %w", c.ID, e.explained(err))
	}
	return result, nil
}
