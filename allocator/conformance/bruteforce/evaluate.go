// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"
)

// newEnvironment returns Kubernetes' CEL environment with three more variables. Expressions read devices, an untyped list. The
// variables of a definition read device and variables.
var newEnvironment = sync.OnceValues(func() (*celgo.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []celgo.EnvOption{
			celgo.Variable("devices", celgo.ListType(celgo.DynType)),
			celgo.Variable("device", celgo.DynType),
			celgo.Variable("variables", celgo.DynType),
			ext.Bindings(ext.BindingsVersion(0)),
		},
	})
	if err != nil {
		return nil, err
	}
	return set.StoredExpressionsEnv(), nil
})

// programs caches compiled expressions by their text, because compiling takes far longer than evaluating.
var programs sync.Map

func compile(expression string) (celgo.Program, error) {
	if known, ok := programs.Load(expression); ok {
		return known.(celgo.Program), nil
	}
	env, err := newEnvironment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	programs.Store(expression, program)
	return program, nil
}

// A variable is a compiled variable of a definition.
type variable struct {
	name    string
	program celgo.Program
}

// evaluate evaluates the constraint for the devices. A result that is not a bool is an error.
func (s *solver) evaluate(c constraint, devices []*device) (bool, error) {
	values := make([]any, len(devices))
	for i, d := range devices {
		if c.values[d] == nil {
			c.values[d] = s.valueFor(c, d)
		}
		values[i] = c.values[d]
	}
	result, _, err := c.program.Eval(map[string]any{"devices": values})
	if err != nil {
		return false, err
	}
	verdict, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression returned %v, not true or false", result)
	}
	return verdict, nil
}

// valueFor returns a device as a map for CEL. The key "variables" holds the values of the constraint's variables. A variable
// that fails has no value, so that an expression that reads the variable fails, too.
func (s *solver) valueFor(c constraint, d *device) map[string]any {
	if d.value == nil {
		d.value = s.value(d)
	}
	variables := map[string]any{}
	for _, v := range c.variables {
		if value, _, err := v.program.Eval(map[string]any{"device": d.value, "variables": maps.Clone(variables)}); err == nil {
			variables[v.name] = value
		}
	}
	result := maps.Clone(d.value)
	result["variables"] = variables
	return result
}

// value returns a device as a map. The additional key "name" makes devices with the same content different. Expressions can't
// read it. A domain of attributes that only other devices have maps to an empty map.
func (s *solver) value(d *device) map[string]any {
	attributes, capacity := make(map[string]any), make(map[string]any)
	for _, slice := range s.Slices {
		attributes[slice.Spec.Driver], capacity[slice.Spec.Driver] = map[string]any{}, map[string]any{}
		for _, other := range slice.Spec.Devices {
			for name := range other.Attributes {
				domain, _ := split(slice.Spec.Driver, name)
				attributes[domain] = map[string]any{}
			}
		}
	}
	for name, attribute := range d.Attributes {
		domain, id := split(d.slice.Spec.Driver, name)
		attributes[domain].(map[string]any)[id] = scalar(attribute)
	}
	for name, value := range d.Capacity {
		domain, id := split(d.slice.Spec.Driver, name)
		capacity[domain].(map[string]any)[id] = apiservercel.Quantity{Quantity: ptr.To(value.Value.DeepCopy())}
	}
	return map[string]any{
		"name":                     d.id.String(),
		"driver":                   d.slice.Spec.Driver,
		"attributes":               attributes,
		"capacity":                 capacity,
		"allowMultipleAllocations": ptr.Deref(d.AllowMultipleAllocations, false),
	}
}

func split(driver string, name resourceapi.QualifiedName) (domain, id string) {
	if domain, id, qualified := strings.Cut(string(name), "/"); qualified {
		return domain, id
	}
	return driver, string(name)
}

// scalar returns the value of an attribute of a type that expressions in problems compare. A version is returned as text.
func scalar(attribute resourceapi.DeviceAttribute) any {
	switch {
	case attribute.IntValue != nil:
		return *attribute.IntValue
	case attribute.BoolValue != nil:
		return *attribute.BoolValue
	case attribute.StringValue != nil:
		return *attribute.StringValue
	default:
		return ptr.Deref(attribute.VersionValue, "")
	}
}
