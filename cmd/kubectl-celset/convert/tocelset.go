// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

const referencePrefix = v1alpha1.AttributeDomain + "/"

// ToCelset replaces each constraint of the KEP in an object by a definition and a reference to it. It returns the number of
// replaced constraints. Definitions are named by the prefix and a number that starts at 1. Constraints with the same expression
// share a definition.
func ToCelset(object *unstructured.Unstructured, prefix string) (converted int, err error) {
	c, err := claimOf(object)
	if c == nil || err != nil {
		return 0, err
	}
	constraints, err := c.list("constraints")
	if err != nil {
		return 0, err
	}
	config, err := c.list("config")
	if err != nil {
		return 0, err
	}
	n := newNamer(prefix, constraints, config)
	for i, constraint := range constraints {
		expression, isCEL, err := c.expression(i, constraint)
		if err != nil {
			return 0, err
		}
		if !isCEL {
			continue
		}
		name, isNew, err := n.name(expression)
		if err != nil {
			return 0, c.errorAt(fmt.Sprintf(".constraints[%d].cel", i), "%v", err)
		}
		if isNew {
			config = append(config, definition(name, expression))
		}
		delete(constraint, "cel")
		constraint["matchAttribute"] = referencePrefix + name
		converted++
	}
	if converted > 0 {
		c.set("config", config)
	}
	return converted, nil
}

// expression returns the CEL expression of the i-th constraint, and false if the constraint has another type. It returns an
// error for fields that the KEP's API would reject, because the conversion would lose them.
func (c *claim) expression(i int, constraint map[string]any) (string, bool, error) {
	value, found := constraint["cel"]
	if !found {
		return "", false, nil
	}
	place := fmt.Sprintf(".constraints[%d]", i)
	cel, ok := value.(map[string]any)
	if !ok {
		return "", false, c.errorAt(place+".cel", "must be an object with the field expression")
	}
	for name := range constraint {
		if name != "cel" && name != "requests" {
			return "", false, c.errorAt(place, "has cel and %s: split it into two constraints", name)
		}
	}
	for name := range cel {
		if name != "expression" {
			return "", false, c.errorAt(place+".cel", "unknown field %q", name)
		}
	}
	text, ok := cel["expression"].(string)
	if !ok || strings.TrimSpace(text) == "" {
		return "", false, c.errorAt(place+".cel.expression", "must be a CEL expression over `devices`")
	}
	return text, true, nil
}

func definition(name, expression string) map[string]any {
	return map[string]any{
		"opaque": map[string]any{
			"driver": v1alpha1.DriverName,
			"parameters": map[string]any{
				"apiVersion": v1alpha1.SchemeGroupVersion.String(),
				"kind":       v1alpha1.Kind,
				"name":       name,
				"expression": expression,
			},
		},
	}
}

// namer chooses the names of new definitions.
type namer struct {
	prefix string
	// taken holds the names that the claim already defines or references. New definitions get other names.
	taken map[string]bool
	// byExpression maps an expression to the name of its new definition.
	byExpression map[string]string
	// next is the number in the name of the last new definition.
	next int
}

func newNamer(prefix string, constraints, config []map[string]any) *namer {
	n := &namer{prefix: prefix, taken: make(map[string]bool), byExpression: make(map[string]string)}
	for _, constraint := range constraints {
		if attribute, ok := constraint["matchAttribute"].(string); ok {
			n.taken[strings.TrimPrefix(attribute, referencePrefix)] = true
		}
	}
	for _, entry := range config {
		if parameters := parametersOf(entry); parameters != nil && parameters["kind"] != v1alpha1.PreferenceKind {
			name, _ := parameters["name"].(string)
			n.taken[name] = true
		}
	}
	return n
}

// name returns the name of the definition for an expression. isNew is set for the first constraint with this expression, so
// that the caller adds the definition.
func (n *namer) name(expression string) (name string, isNew bool, err error) {
	if name, found := n.byExpression[expression]; found {
		return name, false, nil
	}
	for isNew := false; !isNew; isNew = !n.taken[name] {
		n.next++
		name = fmt.Sprint(n.prefix, n.next)
	}
	n.byExpression[expression] = name
	definition := &v1alpha1.CELDeviceConstraint{Name: name, Expression: expression}
	return name, true, v1alpha1.ValidateDefinition(definition, field.NewPath("parameters")).ToAggregate()
}

// parametersOf returns the parameters of a configuration entry for the driver celset.dev, or nil for any other entry.
func parametersOf(entry map[string]any) map[string]any {
	opaque, _ := entry["opaque"].(map[string]any)
	if driver, _ := opaque["driver"].(string); driver != v1alpha1.DriverName {
		return nil
	}
	parameters, _ := opaque["parameters"].(map[string]any)
	return parameters
}
