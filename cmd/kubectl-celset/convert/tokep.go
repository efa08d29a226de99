// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// ToKEP turns references and their definitions into the KEP's constraints, and tells how
// many there were. Definitions that stand in device classes are taken from there, and stay
// there; those of the claim that nothing refers to stay too.
func ToKEP(ctx context.Context, object *unstructured.Unstructured, classes v1alpha1.ClassGetter) (converted int, err error) {
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
	if err := c.withoutPreferences(config); err != nil {
		return 0, err
	}
	if !hasReference(constraints) {
		return 0, nil
	}
	resolved, err := c.resolve(classes)
	if err != nil {
		return 0, err
	}
	names, used := make(map[int]string), make(map[string]bool)
	for _, r := range resolved {
		expression, err := withoutVariables(ctx, &r)
		if err != nil {
			return 0, c.errorAt("", "constraint %s has variables, which the KEP does not have, and they can't be written out in its expression: %v", r.Name, err)
		}
		if own := ownFunctions(ctx, expression); len(own) > 0 {
			return 0, c.errorAt("", "constraint %s uses %s, which the KEP does not have: write it in plain CEL first", r.Name, strings.Join(own, ", "))
		}
		if r.FailurePolicy != v1alpha1.FailurePolicyFail {
			return 0, c.errorAt("", "constraint %s has failurePolicy: %s, which the KEP does not have: leave it out first", r.Name, r.FailurePolicy)
		}
		if r.Default {
			// A class has no constraints in the KEP.
			constraints = append(constraints, map[string]any{
				"requests": []any{r.Requests[0]}, "cel": map[string]any{"expression": expression},
			})
			names[len(constraints)-1] = r.Name
			continue
		}
		constraint := constraints[r.Index]
		delete(constraint, "matchAttribute")
		constraint["cel"] = map[string]any{"expression": expression}
		names[r.Index], used[r.Name] = r.Name, true
	}
	c.set("constraints", constraints)
	c.set("config", slices.DeleteFunc(config, func(entry map[string]any) bool {
		parameters := parametersOf(entry)
		name, _ := parameters["name"].(string)
		return parameters != nil && parameters["kind"] != v1alpha1.PreferenceKind && used[name]
	}))
	c.setNames(names)
	return len(resolved), nil
}

var environment = sync.OnceValues(func() (*device.Environment, error) { return device.NewEnvironment(cel.Config{}) })

// withoutVariables is the expression itself if there are none: then it need not compile.
func withoutVariables(ctx context.Context, constraint *v1alpha1.Constraint) (string, error) {
	if len(constraint.Variables) == 0 {
		return constraint.Expression, nil
	}
	env, err := environment()
	if err != nil {
		return "", err
	}
	return env.WithoutVariables(ctx, constraint.Expression, constraint.Variables...)
}

// ownFunctions are those that only celset has. An expression that does not compile has none.
func ownFunctions(ctx context.Context, expression string) []string {
	env, err := environment()
	if err != nil {
		return nil
	}
	compiled, err := env.Compile(ctx, expression)
	if err != nil {
		return nil
	}
	return compiled.OwnFunctions()
}

// withoutPreferences is an error about the first preference: it would be lost unnoticed on whoever
// takes the KEP's form for all that the claim says.
func (c *claim) withoutPreferences(config []map[string]any) error {
	for i, entry := range config {
		if parameters := parametersOf(entry); parameters["kind"] == v1alpha1.PreferenceKind {
			return c.errorAt(fmt.Sprintf(".config[%d]", i), "preference %v: the KEP has no preferences: remove it first", parameters["name"])
		}
	}
	return nil
}

func hasReference(constraints []map[string]any) bool {
	return slices.ContainsFunc(constraints, func(constraint map[string]any) bool {
		attribute, _ := constraint["matchAttribute"].(string)
		return strings.HasPrefix(attribute, referencePrefix)
	})
}

// resolve finds the definitions as the scheduler does. What it needs for that is the same
// in all versions of the API but for the class of a request in v1beta1.
func (c *claim) resolve(classes v1alpha1.ClassGetter) ([]v1alpha1.Constraint, error) {
	spec := &resourceapi.ResourceClaimSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"devices": c.devices}, spec); err != nil {
		return nil, c.errorAt("", "%v", err)
	}
	if err := c.addClasses(spec); err != nil {
		return nil, err
	}
	carrier := v1alpha1.ClaimCarrier(&resourceapi.ResourceClaim{})
	if strings.HasPrefix(c.path, "spec.spec") {
		carrier = v1alpha1.TemplateCarrier(&resourceapi.ResourceClaimTemplate{})
	}
	carrier.Object.Name, carrier.Object.Namespace = c.object.GetName(), c.object.GetNamespace()
	carrier.Spec = spec
	return carrier.Resolve(classes)
}

// addClasses reads the requests of v1beta1, which are not divided into exact ones and
// prioritized lists.
func (c *claim) addClasses(spec *resourceapi.ResourceClaimSpec) error {
	requests, err := c.list("requests")
	if err != nil {
		return err
	}
	for i, request := range requests {
		if class, ok := request["deviceClassName"].(string); ok && i < len(spec.Devices.Requests) {
			exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: class}
			switch count := request["count"].(type) {
			case int64:
				exactly.Count = count
			case float64:
				exactly.Count = int64(count)
			}
			mode, _ := request["allocationMode"].(string)
			exactly.AllocationMode = resourceapi.DeviceAllocationMode(mode)
			exactly.AdminAccess = isAdmin(request)
			spec.Devices.Requests[i].Exactly = exactly
		}
	}
	return nil
}

func isAdmin(request map[string]any) *bool {
	admin, _ := request["adminAccess"].(bool)
	return &admin
}

// parametersOf returns the parameters of a definition, nil of any other configuration.
func parametersOf(entry map[string]any) map[string]any {
	opaque, _ := entry["opaque"].(map[string]any)
	if driver, _ := opaque["driver"].(string); driver != v1alpha1.DriverName {
		return nil
	}
	parameters, _ := opaque["parameters"].(map[string]any)
	return parameters
}
