// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// A constraint is a condition on the devices of the requests that it covers.
type constraint struct {
	requests []string // empty means all
	// Exactly one of these three fields is set.
	match, distinct string
	program         celgo.Program
	// variables holds the variables of the constraint's definition. values caches each device in the form that the program reads.
	variables []variable
	values    map[*device]any
	// aboutNode is true if a failure of the program excludes only this node.
	aboutNode bool
}

func (c constraint) covers(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.name) || r.list != "" && slices.Contains(c.requests, r.list)
}

// satisfies reports whether a complete assignment satisfies the constraints of its claim. It checks constraints that compare
// attributes first, because their check can't fail.
func (s *solver) satisfies(c *claim, assignment []choice) (bool, error) {
	for _, constraint := range c.constraints {
		if constraint.program == nil && !constraint.compares(constraint.covered(assignment), s.Features.ListTypeAttributes) {
			return false, nil
		}
	}
	for _, constraint := range c.constraints {
		covered := constraint.covered(assignment)
		// A CEL constraint is not evaluated for an empty set.
		if constraint.program == nil || len(covered) == 0 {
			continue
		}
		s.solution.Evaluations++
		satisfied, err := s.evaluate(constraint, covered)
		if err != nil {
			return false, &EvaluationError{Evaluation: s.solution.Evaluations, AboutNode: constraint.aboutNode, Err: err}
		}
		if !satisfied {
			return false, nil
		}
	}
	return true, nil
}

func (c constraint) covered(assignment []choice) []*device {
	var devices []*device
	for _, choice := range assignment {
		if c.covers(choice.request) {
			devices = append(devices, choice.device)
		}
	}
	return devices
}

// compares reports whether the devices satisfy a match or distinct constraint. All devices must have the attribute. For match,
// all devices must have a common value. For distinct, no two devices may have a common value. Only lists have several values.
func (c constraint) compares(devices []*device, lists bool) bool {
	var common sets.Set[string]
	for i, a := range devices {
		values := attribute(a, c.match+c.distinct, lists)
		if len(values) == 0 {
			return false
		}
		if i == 0 {
			common = values
		}
		common = common.Intersection(values)
		for _, b := range devices[:i] {
			shared := values.Intersection(attribute(b, c.match+c.distinct, lists))
			if c.distinct != "" && shared.Len() > 0 {
				return false
			}
		}
	}
	return c.match == "" || len(devices) == 0 || common.Len() > 0
}

// attribute returns the values of a device's attribute: one string for a scalar, or one string for each element of a list. The
// string contains type and value. A name without a domain belongs to the driver's domain.
func attribute(d *device, name string, lists bool) sets.Set[string] {
	for short, value := range d.Attributes {
		full := string(short)
		if !strings.Contains(full, "/") {
			full = d.slice.Spec.Driver + "/" + full
		}
		if full == name {
			return elements(value, lists)
		}
	}
	return nil
}

// elements returns the values of an attribute. It relies on names of types in the API: the list type of "string" is "strings".
func elements(value resourceapi.DeviceAttribute, lists bool) sets.Set[string] {
	text, err := json.Marshal(value)
	if err != nil || !lists {
		return sets.New(string(text))
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil
	}
	result := sets.New[string]()
	for kind, content := range fields {
		list, isList := content.([]any)
		if !isList {
			list = []any{content}
		}
		for _, element := range list {
			result.Insert(fmt.Sprintf("%s %v", strings.TrimSuffix(kind, "s"), element))
		}
	}
	return result
}

func (s *solver) prepareConstraint(claim *resourceapi.ResourceClaim, api *resourceapi.DeviceConstraint) (constraint, error) {
	result := constraint{requests: api.Requests}
	switch {
	case api.DistinctAttribute != nil:
		result.distinct = string(*api.DistinctAttribute)
		return result, nil
	case api.MatchAttribute == nil:
		return result, fmt.Errorf("it is empty")
	}
	name, isReference := strings.CutPrefix(string(*api.MatchAttribute), "celset.dev/")
	if !isReference {
		result.match = string(*api.MatchAttribute)
		return result, nil
	}
	def, err := s.definition(claim, name)
	if err != nil {
		return result, err
	}
	return result, result.define(def)
}

// A definition is a CEL constraint as defined in the configuration of a claim or class.
type definition struct {
	Name, Expression string
	Variables        []struct{ Name, Expression string }
	FailurePolicy    string
	Enforcement      string
}

func (c *constraint) define(def definition) (err error) {
	for _, v := range def.Variables {
		program, err := compile(v.Expression)
		if err != nil {
			return fmt.Errorf("variable %s: %w", v.Name, err)
		}
		c.variables = append(c.variables, variable{v.Name, program})
	}
	c.values, c.aboutNode = map[*device]any{}, def.FailurePolicy == "NodeDoesNotFit"
	c.program, err = compile(def.Expression)
	return err
}

// definition returns the constraint that is defined by the name in the claim or in any class. Problems define each name once.
func (s *solver) definition(claim *resourceapi.ResourceClaim, name string) (definition, error) {
	var configurations []resourceapi.DeviceConfiguration
	for _, config := range claim.Spec.Devices.Config {
		configurations = append(configurations, config.DeviceConfiguration)
	}
	for _, class := range s.Classes {
		for _, config := range class.Spec.Config {
			configurations = append(configurations, config.DeviceConfiguration)
		}
	}
	definitions, err := definitionsIn(configurations)
	for _, def := range definitions {
		if def.Name == name {
			return def, err
		}
	}
	return definition{}, fmt.Errorf("no definition of %s: %w", name, err)
}

func definitionsIn(configurations []resourceapi.DeviceConfiguration) ([]definition, error) {
	var definitions []definition
	for _, config := range configurations {
		if config.Opaque == nil || config.Opaque.Driver != "celset.dev" {
			continue
		}
		var def definition
		if err := json.Unmarshal(config.Opaque.Parameters.Raw, &def); err != nil {
			return nil, fmt.Errorf("definition: %w", err)
		}
		definitions = append(definitions, def)
	}
	return definitions, nil
}

// defaults returns the default constraints of a class for a request. They apply only if the request gets several devices.
func (s *solver) defaults(r *request, class string) ([]constraint, error) {
	if r.adminAccess || !r.all && r.count < 2 {
		return nil, nil
	}
	var configurations []resourceapi.DeviceConfiguration
	for _, c := range s.Classes {
		if c.Name != class {
			continue
		}
		for _, config := range c.Spec.Config {
			configurations = append(configurations, config.DeviceConfiguration)
		}
	}
	definitions, err := definitionsIn(configurations)
	var constraints []constraint
	for _, def := range definitions {
		if def.Enforcement != "Always" {
			continue
		}
		c := constraint{requests: []string{r.name}}
		if err := c.define(def); err != nil {
			return nil, err
		}
		constraints = append(constraints, c)
	}
	return constraints, err
}
