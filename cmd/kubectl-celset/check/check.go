// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/clusterstate"
)

// Options say what the objects don't.
type Options struct {
	// Count is assumed for definitions that no claim refers to.
	Count int
	// Features are those of the scheduler.
	Features structured.Features
}

// checker holds what all objects are checked with.
type checker struct {
	Options
	state       *clusterstate.State
	environment *device.Environment
	nodes       *nodes
}

// Run checks the objects for which wanted is true: *ResourceClaim, *ResourceClaimTemplate
// and *DeviceClass. Objects that have nothing to do with constraints are left out. The
// error is about checking, not about the objects.
func Run(ctx context.Context, state *clusterstate.State, wanted func(object any) bool, options Options) (*Report, error) {
	environment, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	nodes, err := newNodes(ctx, state, options.Features)
	if err != nil {
		return nil, err
	}
	c := &checker{Options: options, state: state, environment: environment, nodes: nodes}
	report := &Report{Objects: []Object{}}
	add := func(object Object) {
		if len(object.Errors)+len(object.Warnings)+len(object.Constraints)+len(object.Preferences) > 0 {
			report.Objects = append(report.Objects, object)
		}
	}
	for _, class := range state.Objects.Classes {
		if wanted(class) {
			add(c.class(ctx, class))
		}
	}
	for _, template := range state.Templates {
		if wanted(template) {
			add(c.claim(ctx, v1alpha1.TemplateCarrier(template), clusterstate.Instantiate(template, template.Name)))
		}
	}
	for _, claim := range state.Claims {
		if wanted(claim) {
			add(c.claim(ctx, v1alpha1.ClaimCarrier(claim), claim))
		}
	}
	return report, ctx.Err()
}

func (c *checker) class(ctx context.Context, class *resourceapi.DeviceClass) Object {
	result := Object{Kind: "DeviceClass", Name: class.Name}
	definitions, err := v1alpha1.ClassDefinitions(class)
	result.addErrors(err)
	for _, definition := range definitions {
		result.Constraints = append(result.Constraints, c.unreferenced(ctx, definition))
	}
	c.classPreferences(ctx, &result, class)
	return result
}

func (c *checker) claim(ctx context.Context, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim) Object {
	result := Object{Kind: carrier.Object.Kind, Namespace: carrier.Object.Namespace, Name: carrier.Object.Name}
	own, err := carrier.Definitions()
	result.addErrors(err)
	var resolved []v1alpha1.Constraint
	if err == nil {
		resolved, err = carrier.Resolve(c.state.Classes())
		result.addErrors(err)
	}
	for _, constraint := range resolved {
		result.Constraints = append(result.Constraints, c.referenced(ctx, carrier, claim, constraint))
	}
	names := v1alpha1.Unreferenced(carrier.Spec)
	for _, definition := range own {
		isUnreferenced := slices.Contains(names, definition.Name)
		if isUnreferenced {
			result.Warnings = append(result.Warnings, fmt.Sprintf("%s: no constraint refers to %s: it does nothing",
				definition.Source.Field, definition.Name))
		}
		if isUnreferenced || len(resolved) == 0 {
			result.Constraints = append(result.Constraints, c.unreferenced(ctx, definition))
		}
	}
	c.preferences(ctx, &result, carrier, claim)
	return result
}

// addErrors takes the mistakes one by one.
func (o *Object) addErrors(err error) {
	if failure, ok := errors.AsType[*v1alpha1.Error](err); ok {
		for _, one := range failure.Errors {
			o.Errors = append(o.Errors, one.Error())
		}
	} else if err != nil {
		o.Errors = append(o.Errors, err.Error())
	}
}

// unreferenced is for a definition of which nobody says for how many devices it is.
func (c *checker) unreferenced(ctx context.Context, definition v1alpha1.Definition) Constraint {
	result := Constraint{
		Name:    definition.Name,
		Source:  definition.Source.String(),
		Default: definition.Default,
		Facts:   Facts{Devices: []int{c.Count}, Assumed: true},
	}
	c.expression(ctx, &result, definition.Expression, definition.Variables, nil)
	return result
}

func (c *checker) referenced(ctx context.Context, carrier v1alpha1.Carrier, claim *resourceapi.ResourceClaim, constraint v1alpha1.Constraint) Constraint {
	result := Constraint{
		Name:     constraint.Name,
		Field:    carrier.Path.Child("devices", "constraints").Index(constraint.Index).String(),
		Default:  constraint.Default,
		Source:   constraint.Source.String(),
		Requests: constraint.Requests,
	}
	if constraint.Default {
		result.Field = carrier.Path.Child("devices", "requests").Key(constraint.Requests[0]).String()
	}
	covered := coveredRequests(&claim.Spec.Devices, constraint.Requests)
	candidates := c.candidates(ctx, &result.Facts, claim, covered)
	c.expression(ctx, &result, constraint.Expression, constraint.Variables, candidates)
	for _, on := range candidates {
		result.Nodes = append(result.Nodes, on.sets(covered))
	}
	return result
}

// candidates looks for those of the covered requests, and fills in the sizes that sets can have.
func (c *checker) candidates(ctx context.Context, facts *Facts, claim *resourceapi.ResourceClaim, covered coverage) []candidates {
	candidates, err := c.nodes.candidates(ctx, claim, covered)
	if err != nil {
		// What keeps the scheduler from looking for devices is for simulate to tell.
		candidates = nil
	}
	facts.Devices = covered.sizes(candidates)
	if len(facts.Devices) == 0 {
		facts.Devices, facts.Assumed = []int{c.Count}, true
	}
	return candidates
}
