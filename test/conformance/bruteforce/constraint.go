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
)

// constraint is a condition on the devices of the requests that it covers.
type constraint struct {
	requests []string // none means all
	// One of these is set.
	match, distinct string
	program         celgo.Program
}

func (c constraint) covers(r *request) bool {
	return len(c.requests) == 0 || slices.Contains(c.requests, r.name)
}

// satisfies tells whether a complete assignment satisfies the constraints of its
// claim. Those that compare attributes come first, because comparing can't fail.
func (s *solver) satisfies(c *claim, assignment []choice) (bool, error) {
	for _, constraint := range c.constraints {
		if constraint.program == nil && !constraint.compares(constraint.covered(assignment)) {
			return false, nil
		}
	}
	for _, constraint := range c.constraints {
		covered := constraint.covered(assignment)
		// Nothing is asked about no devices.
		if constraint.program == nil || len(covered) == 0 {
			continue
		}
		s.solution.Evaluations++
		satisfied, err := s.evaluate(constraint.program, covered)
		if err != nil {
			return false, &EvaluationError{Evaluation: s.solution.Evaluations, Err: err}
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

// compares looks at all pairs of devices: all must have the attribute, equal in
// type and value if it is to match, not so if it is to be distinct.
func (c constraint) compares(devices []*device) bool {
	for i, a := range devices {
		valueA, ok := attribute(a, c.match+c.distinct)
		if !ok {
			return false
		}
		for _, b := range devices[:i] {
			if valueB, _ := attribute(b, c.match+c.distinct); (valueA == valueB) != (c.match != "") {
				return false
			}
		}
	}
	return true
}

// attribute is type and value of an attribute, in one string. Names without a
// domain have that of the driver.
func attribute(d *device, name string) (string, bool) {
	for short, value := range d.Attributes {
		full := string(short)
		if !strings.Contains(full, "/") {
			full = d.slice.Spec.Driver + "/" + full
		}
		if full == name {
			text, err := json.Marshal(value)
			return string(text), err == nil
		}
	}
	return "", false
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
	expression, err := s.definition(claim, name)
	if err != nil {
		return result, err
	}
	result.program, err = compile(expression)
	return result, err
}

// definition finds the definition of a name in the claim or else in any class:
// problems don't define a name twice.
func (s *solver) definition(claim *resourceapi.ResourceClaim, name string) (string, error) {
	var configurations []resourceapi.DeviceConfiguration
	for _, config := range claim.Spec.Devices.Config {
		configurations = append(configurations, config.DeviceConfiguration)
	}
	for _, class := range s.Classes {
		for _, config := range class.Spec.Config {
			configurations = append(configurations, config.DeviceConfiguration)
		}
	}
	for _, config := range configurations {
		var definition struct{ Name, Expression string }
		if config.Opaque == nil || config.Opaque.Driver != "celset.dev" {
			continue
		}
		if err := json.Unmarshal(config.Opaque.Parameters.Raw, &definition); err != nil {
			return "", fmt.Errorf("definition: %w", err)
		}
		if definition.Name == name {
			return definition.Expression, nil
		}
	}
	return "", fmt.Errorf("no definition of %s", name)
}
