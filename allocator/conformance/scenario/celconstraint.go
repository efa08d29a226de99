// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/randomexpr"
)

// celConstraints adds one or two CEL constraints to a claim, at random positions among the other constraints. A profile with
// failing expressions allows only one CEL constraint in a case.
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
			// The definition is a default constraint of a class. It applies without a constraint that refers to it.
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

// define adds the definition of a constraint to the claim, or to the class of a covered request. There it may be a default.
func (g *generator) define(devices *resourceapi.DeviceClaim, covered []string, name string) {
	definition := g.definition(name, wantedBy(devices, covered))
	if g.sometimes() {
		// A default constraint may apply to several requests. A failing expression should be evaluated for one constraint only.
		if !g.FailingExpression && g.maybe() {
			definition.Enforcement = v1alpha1.EnforcementAlways
		}
		class := g.classOf(devices, pick(g, covered...))
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: parametersOf(definition)})
		return
	}
	devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: parametersOf(definition)})
}

// classOf returns the class of the request or alternative with this name. A list has the class of its first alternative.
func (g *generator) classOf(devices *resourceapi.DeviceClaim, name string) *resourceapi.DeviceClass {
	for _, a := range byName(devices.Requests, name) {
		if i := slices.IndexFunc(g.Classes, func(c *resourceapi.DeviceClass) bool { return c.Name == a.class }); i >= 0 {
			return g.Classes[i]
		}
	}
	return nil
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

// wantedBy returns the number of devices that the named requests want. A request for all devices counts as two devices. A
// request with alternatives counts as its last alternative.
func wantedBy(devices *resourceapi.DeviceClaim, names []string) int {
	wanted := 0
	for _, name := range names {
		one := 0
		for _, a := range byName(devices.Requests, name) {
			one = int(a.count)
			if a.all {
				one = 2
			}
		}
		wanted += one
	}
	return wanted
}

// definition draws the definition of a constraint for sets of about wanted devices.
func (g *generator) definition(name string, wanted int) *v1alpha1.CELDeviceConstraint {
	definition := &v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:     name, Expression: g.expression(wanted),
	}
	if g.maybe() {
		g.nameParts(definition)
	}
	if g.FailingExpression && g.maybe() {
		definition.FailurePolicy = v1alpha1.FailurePolicyNodeDoesNotFit
	}
	return definition
}

// nameParts replaces attributes in the expression by variables of the definition, except in has().
func (g *generator) nameParts(definition *v1alpha1.CELDeviceConstraint) {
	add := func(name, expression string) {
		definition.Variables = append(definition.Variables, v1alpha1.Variable{Name: name, Expression: expression})
	}
	// A variable may have a map as its value, and another variable may read this variable.
	own := "device.attributes[device.driver]"
	if g.maybe() {
		add("own", own)
		own = "variables.own"
	}
	text := definition.Expression
	replace := func(part, name string) (found bool) {
		found = strings.Contains(text, part)
		text = strings.ReplaceAll(text, part, name)
		return found
	}
	for _, id := range []string{attributeIndex, attributeRow, attributeCol, attributeGroup} {
		found := false
		for _, device := range []string{"devices[size(devices) - 1]", "devices[0]", "other", "d"} {
			found = replace(of(device, id), device+".variables."+id) || found
		}
		if !found {
			continue
		}
		add(id, own+"."+id)
		// The part of the expression that may fail can move into a variable.
		if replace("6 / d.variables."+id, "d.variables.share") {
			add("share", "6 / variables."+id)
		}
	}
	if replace("d.attributes['"+sharedDomain+"']."+attributeRack, "d.variables.rack") {
		add("rack", "device.attributes['"+sharedDomain+"']."+attributeRack)
	}
	definition.Expression = text
}

// parametersOf encodes a definition as the parameters of a configuration, with fields sorted by name as if read from YAML.
func parametersOf(definition *v1alpha1.CELDeviceConstraint) resourceapi.DeviceConfiguration {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		panic(err) // texts can always be encoded
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return opaque(v1alpha1.DriverName, string(text))
}

// Definition returns the CEL constraint that a configuration defines, or nil if it defines no constraint.
func Definition(configuration resourceapi.DeviceConfiguration) *v1alpha1.CELDeviceConstraint {
	if configuration.Opaque == nil || configuration.Opaque.Driver != v1alpha1.DriverName {
		return nil
	}
	definition := &v1alpha1.CELDeviceConstraint{}
	if err := json.Unmarshal(configuration.Opaque.Parameters.Raw, definition); err != nil {
		return nil
	}
	return definition
}

// Definitions returns all definitions of constraints in the classes and claims of a case.
func (c *Case) Definitions() (all []*v1alpha1.CELDeviceConstraint) {
	edit("{Classes.Spec,Claims.Spec.Devices}.Config.DeviceConfiguration", func(configuration *resourceapi.DeviceConfiguration) bool {
		if definition := Definition(*configuration); definition != nil {
			all = append(all, definition)
		}
		return false
	})(c)
	return all
}

// of returns the CEL expression for the attribute id of a device, in the domain of the device's driver.
func of(device, id string) string { return device + ".attributes[" + device + ".driver]." + id }

//go:embed expressions.txt
var expressions string

var grammar = sync.OnceValue(func() randomexpr.Grammar { return randomexpr.Parse(expressions) })

// expression draws an expression for sets of about wanted devices.
func (g *generator) expression(wanted int) string {
	if g.FailingExpression {
		return grammar().Write(g.T, "failingExpression", nil)
	}
	scope := map[string][]string{}
	// Requests may want 2^62 devices. Draw only the first hundred numbers and the last number of a long range.
	add := func(kind string, from, to int) {
		for n := from; n <= to && n-from < 100; n++ {
			scope[kind] = append(scope[kind], fmt.Sprint(n))
		}
		if to-from >= 100 {
			scope[kind] = append(scope[kind], fmt.Sprint(to))
		}
	}
	add("wanted", wanted, wanted)
	add("more", wanted+1, wanted+1)
	add("fewer", max(0, wanted-1), max(0, wanted-1))
	add("sums", wanted, max(wanted, 3*wanted))
	add("least", 0, max(0, wanted))
	if wanted > 1 {
		scope["several"] = []string{""}
	}
	return grammar().Write(g.T, "expression", scope)
}
