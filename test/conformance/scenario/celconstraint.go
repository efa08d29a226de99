// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// celConstraints adds one or two CEL constraints to a claim, at any place among
// the other constraints. A profile with failing expressions allows one a case.
func (g *generator) celConstraints(devices *resourceapi.DeviceClaim) {
	count := pick(g, 1, 1, 0, 1, 2)
	if g.FailingExpression {
		count = 1 - g.definitions
	}
	if len(devices.Requests) == 0 {
		return
	}
	for range count {
		covered := g.references(devices.Requests)
		requests := covered
		if g.maybe() {
			covered = some(g, covered)
			requests = covered
		} else if g.maybe() || !hasAlternatives(devices) {
			covered, requests = requestNames(devices), nil
		}
		g.definitions++
		name := fmt.Sprintf("c%d", g.definitions)
		g.define(devices, covered, name)
		if g.rarely() && !g.FailingExpression {
			// Nothing refers to it; a default holds all the same.
			continue
		}
		constraint := resourceapi.DeviceConstraint{
			Requests:       requests,
			MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + name)),
		}
		devices.Constraints = append(devices.Constraints, constraint)
		last := len(devices.Constraints) - 1
		place := g.between(0, last)
		devices.Constraints[place], devices.Constraints[last] = devices.Constraints[last], devices.Constraints[place]
	}
}

// define adds the definition of a constraint to the claim or to the class of a
// covered request. In a class it may hold without a reference, too.
func (g *generator) define(devices *resourceapi.DeviceClaim, covered []string, name string) {
	definition := g.definition(name, wantedBy(devices, covered))
	if g.sometimes() {
		// Where an expression fails, it should be the only one.
		definition.Default = !g.FailingExpression && g.maybe()
		class := g.classOf(devices, pick(g, covered...))
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: parametersOf(definition)})
		return
	}
	devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: parametersOf(definition)})
}

// classOf returns the class that a request or its first alternative has.
func (g *generator) classOf(devices *resourceapi.DeviceClaim, name string) *resourceapi.DeviceClass {
	var result *resourceapi.DeviceClass
	byName(devices.Requests, name, func(r *resourceapi.ExactDeviceRequest) {
		for _, class := range g.Classes {
			if class.Name == r.DeviceClassName && result == nil {
				result = class
			}
		}
	})
	return result
}

func requestNames(devices *resourceapi.DeviceClaim) []string {
	var names []string
	for _, request := range devices.Requests {
		names = append(names, request.Name)
	}
	return names
}

func hasAlternatives(devices *resourceapi.DeviceClaim) bool {
	return slices.ContainsFunc(devices.Requests, func(r resourceapi.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
}

// wantedBy is the number of devices that the requests want, all devices counted
// as two, and of alternatives the last.
func wantedBy(devices *resourceapi.DeviceClaim, names []string) int {
	wanted := 0
	for _, name := range names {
		one := 0
		byName(devices.Requests, name, func(r *resourceapi.ExactDeviceRequest) {
			one = int(r.Count)
			if r.AllocationMode == resourceapi.DeviceAllocationModeAll {
				one = 2
			}
		})
		wanted += one
	}
	return wanted
}
