// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// celConstraints adds one or two CEL constraints to a claim, at any place among
// the other constraints. A profile with failing expressions allows one a case.
func (g *generator) celConstraints(devices *resourceapi.DeviceClaim, names []string) {
	count := pick(g, 1, 1, 0, 1, 2)
	if g.FailingExpression {
		count = 1 - g.definitions
	}
	if len(names) == 0 {
		return
	}
	for range count {
		covered := names
		var requests []string
		if g.maybe() {
			covered = some(g, names)
			requests = covered
		}
		g.definitions++
		name := fmt.Sprintf("c%d", g.definitions)
		g.define(devices, covered, name)
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
// covered request.
func (g *generator) define(devices *resourceapi.DeviceClaim, covered []string, name string) {
	definition := opaque(v1alpha1.DriverName, definitionParameters(name, g.expression(wantedBy(devices, covered))))
	if g.sometimes() {
		class := g.classOf(devices, pick(g, covered...))
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: definition})
		return
	}
	devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: definition})
}

func definitionParameters(name, expression string) string {
	text, err := json.Marshal(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(),
		"kind":       v1alpha1.Kind,
		"name":       name,
		"expression": expression,
	})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(text)
}

func (g *generator) classOf(devices *resourceapi.DeviceClaim, request string) *resourceapi.DeviceClass {
	for i := range devices.Requests {
		if devices.Requests[i].Name == request {
			for _, class := range g.Classes {
				if class.Name == devices.Requests[i].Exactly.DeviceClassName {
					return class
				}
			}
		}
	}
	return g.Classes[0]
}

// wantedBy is the number of devices that the requests want, all devices counted
// as two.
func wantedBy(devices *resourceapi.DeviceClaim, names []string) int {
	wanted := 0
	for i := range devices.Requests {
		for _, name := range names {
			switch {
			case devices.Requests[i].Name != name:
			case devices.Requests[i].Exactly.AllocationMode == resourceapi.DeviceAllocationModeAll:
				wanted += 2
			default:
				wanted += int(devices.Requests[i].Exactly.Count)
			}
		}
	}
	return wanted
}
