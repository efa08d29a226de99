// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// definition draws a definition for a set of about so many devices.
func (g *generator) definition(name string, wanted int) *v1alpha1.CELDeviceConstraint {
	definition := &v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:     name, Expression: g.expression(wanted),
	}
	if g.maybe() {
		g.nameParts(definition)
	}
	if g.FailingExpression && g.maybe() {
		definition.OnError = v1alpha1.OnErrorNodeDoesNotFit
	}
	return definition
}

// nameParts has the expression read attributes as variables. What it asks for with has() stays.
func (g *generator) nameParts(definition *v1alpha1.CELDeviceConstraint) {
	add := func(name, expression string) {
		definition.Variables = append(definition.Variables, v1alpha1.Variable{Name: name, Expression: expression})
	}
	// A variable may be a map, and others may read it.
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
		// What fails may fail in a variable.
		if replace("6 / d.variables."+id, "d.variables.share") {
			add("share", "6 / variables."+id)
		}
	}
	if replace("d.attributes['"+sharedDomain+"']."+attributeRack, "d.variables.rack") {
		add("rack", "device.attributes['"+sharedDomain+"']."+attributeRack)
	}
	definition.Expression = text
}

// parametersOf has the fields in the order of their names, as they are when they were read from YAML.
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

// Definition is one that was drawn, nil of other configurations.
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

// Definitions are all of a case.
func (c *Case) Definitions() []*v1alpha1.CELDeviceConstraint {
	var all []*v1alpha1.CELDeviceConstraint
	add := func(configuration resourceapi.DeviceConfiguration) {
		if definition := Definition(configuration); definition != nil {
			all = append(all, definition)
		}
	}
	for _, class := range c.Classes {
		for _, config := range class.Spec.Config {
			add(config.DeviceConfiguration)
		}
	}
	for _, claim := range c.Claims {
		for _, config := range claim.Spec.Devices.Config {
			add(config.DeviceConfiguration)
		}
	}
	return all
}

// stripDefaults has definitions of classes hold for those only who refer to them.
func stripDefaults(c *Case) bool {
	changed := false
	for _, class := range c.Classes {
		for i := range class.Spec.Config {
			if definition := Definition(class.Spec.Config[i].DeviceConfiguration); definition != nil && definition.Default {
				definition.Default = false
				class.Spec.Config[i].DeviceConfiguration = parametersOf(definition)
				changed = true
			}
		}
	}
	return changed
}
