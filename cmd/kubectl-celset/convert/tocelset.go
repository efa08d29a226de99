// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
)

const referencePrefix = v1alpha1.AttributeDomain + "/"

// ToCelset turns the KEP's constraints of an object into references and definitions, and
// tells how many there were. prefix begins the names of those that have none in
// [wellknown.AnnotationConstraintNames]; they are numbered from 1. Two with the same expression share a
// definition.
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
	known, err := c.names()
	if err != nil {
		return 0, err
	}
	n := newNamer(prefix, constraints, config, known)
	for i, constraint := range constraints {
		expression, isCEL, err := c.expression(i, constraint)
		if err != nil {
			return 0, err
		}
		if !isCEL {
			continue
		}
		name, isNew, err := n.name(i, expression)
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
		c.setNames(nil)
	}
	return converted, nil
}

// expression returns that of a constraint in the KEP's form. Its checks are those that the
// KEP has, so that nothing is lost unnoticed.
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
			return "", false, c.errorAt(place, "has cel and %s: a constraint is one of them, make two of it", name)
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

// namer finds names for constraints that no other definition has, in the claim or,
// because it is referred to, somewhere else.
type namer struct {
	prefix string
	// known names by position.
	known map[int]string
	taken map[string]bool
	// defined expressions by their names, and the other way round.
	defined, named map[string]string
	next           int
}

func newNamer(prefix string, constraints, config []map[string]any, known map[int]string) *namer {
	n := &namer{prefix: prefix, known: known, taken: make(map[string]bool), defined: make(map[string]string), named: make(map[string]string)}
	for _, constraint := range constraints {
		if attribute, ok := constraint["matchAttribute"].(string); ok {
			n.taken[strings.TrimPrefix(attribute, referencePrefix)] = true
		}
	}
	for _, entry := range config {
		if parameters := parametersOf(entry); parameters != nil && parameters["kind"] != v1alpha1.PreferenceKind {
			name, _ := parameters["name"].(string)
			n.taken[name] = true
			n.defined[name], _ = parameters["expression"].(string)
		}
	}
	for _, name := range known {
		n.taken[name] = true
	}
	return n
}

func (n *namer) name(position int, expression string) (name string, isNew bool, err error) {
	if name, found := n.known[position]; found {
		if before, found := n.defined[name]; found && before != expression {
			return "", false, fmt.Errorf("the annotation %s names it %q, which is the name of another expression: change or remove the annotation", wellknown.AnnotationConstraintNames, name)
		} else if found {
			return name, false, nil
		}
		return n.define(name, expression)
	}
	if name, found := n.named[expression]; found {
		return name, false, nil
	}
	for {
		n.next++
		if name = fmt.Sprint(n.prefix, n.next); !n.taken[name] {
			break
		}
	}
	n.named[expression] = name
	return n.define(name, expression)
}

func (n *namer) define(name, expression string) (string, bool, error) {
	n.taken[name], n.defined[name] = true, expression
	definition := &v1alpha1.CELDeviceConstraint{Name: name, Expression: expression}
	return name, true, v1alpha1.ValidateDefinition(definition, field.NewPath("parameters")).ToAggregate()
}
