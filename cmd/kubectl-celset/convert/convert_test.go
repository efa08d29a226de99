// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/convert"
	"github.com/celset/celset/internal/testing/cases"
)

type noClasses struct{}

func (noClasses) Get(name string) (*resourceapi.DeviceClass, error) {
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

func object(t require.TestingT, text string) *unstructured.Unstructured {
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &content))
	return &unstructured.Unstructured{Object: content}
}

// TestRestStays converts random claims. It checks that only the KEP's constraints change, and that a second conversion changes
// nothing.
func TestRestStays(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		before := drawClaim(t)
		o := before.DeepCopy()
		n, err := convert.ToCelset(o, "constraint")
		require.NoError(t, err)
		again, err := convert.ToCelset(o, "constraint")
		require.NoError(t, err)
		require.Zero(t, again, "converted twice")
		expressions := map[string]string{}
		for _, entry := range listOf(t, o, "config") {
			if parameters := entry["opaque"].(map[string]any)["parameters"].(map[string]any); parameters["kind"] == v1alpha1.Kind {
				expressions[parameters["name"].(string)] = parameters["expression"].(string)
			}
		}
		constraints := listOf(t, o, "constraints")
		for i, was := range listOf(t, before, "constraints") {
			if kep, is := was["cel"].(map[string]any); is {
				name := strings.TrimPrefix(constraints[i]["matchAttribute"].(string), "celset.dev/")
				require.Equal(t, kep["expression"], expressions[name])
				delete(was, "cel")
				was["matchAttribute"] = constraints[i]["matchAttribute"]
				n--
			}
			require.Empty(t, cmp.Diff(was, constraints[i]))
		}
		require.Zero(t, n)
		for _, object := range []*unstructured.Unstructured{before, o} {
			unstructured.RemoveNestedField(devicesOf(object), "constraints")
			unstructured.RemoveNestedField(devicesOf(object), "config")
		}
		require.Empty(t, cmp.Diff(before.Object, o.Object))
	})
}

func devicesOf(o *unstructured.Unstructured) map[string]any {
	spec := o.Object["spec"].(map[string]any)
	if inner, is := spec["spec"].(map[string]any); is {
		spec = inner
	}
	return spec["devices"].(map[string]any)
}

func listOf(t require.TestingT, o *unstructured.Unstructured, field string) []map[string]any {
	var result []map[string]any
	list, _, err := unstructured.NestedFieldNoCopy(devicesOf(o), field)
	require.NoError(t, err)
	if list == nil {
		return nil
	}
	for _, entry := range list.([]any) {
		result = append(result, entry.(map[string]any))
	}
	return result
}

// drawClaim generates a claim with unknown fields and with two types of constraints: matchAttribute, and cel as in the KEP.
func drawClaim(t *rapid.T) *unstructured.Unstructured {
	kind := rapid.SampledFrom([]string{"ResourceClaim", "ResourceClaimTemplate"}).Draw(t, "kind")
	version := rapid.SampledFrom([]string{"v1", "v1beta1", "v1beta2"}).Draw(t, "version")
	var constraints []any
	for i := range rapid.IntRange(0, 4).Draw(t, "constraints") {
		constraint := map[string]any{"requests": []any{"mla"}}
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			constraint["matchAttribute"] = fmt.Sprint("mla.example.com/a", i)
		default:
			constraint["cel"] = map[string]any{"expression": rapid.SampledFrom([]string{"true", "size(devices) == 2", "devices == devices"}).Draw(t, "expression")}
		}
		constraints = append(constraints, constraint)
	}
	devices := map[string]any{
		"requests": []any{map[string]any{"name": "mla", "unknown": int64(1)}},
		"unknown":  []any{"x", map[string]any{"y": true}},
	}
	if len(constraints) > 0 {
		devices["constraints"] = constraints
	}
	if rapid.Bool().Draw(t, "configured") {
		devices["config"] = []any{map[string]any{"opaque": map[string]any{"driver": "mla.example.com", "parameters": map[string]any{"speed": "high"}}}}
	}
	spec := map[string]any{"devices": devices}
	if kind == "ResourceClaimTemplate" {
		spec = map[string]any{"spec": spec}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "resource.k8s.io/" + version, "kind": kind, "metadata": map[string]any{"name": "c"}, "spec": spec,
	}}
}

// TestConvertedResolves checks that the scheduler can resolve a converted claim.
func TestConvertedResolves(t *testing.T) {
	o := object(t, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  devices:
    requests: [{name: mla, exactly: {deviceClassName: x, count: 2}}]
    constraints:
    - {matchAttribute: celset.dev/constraint1}
    - {requests: [mla], cel: {expression: a}}
    - {cel: {expression: b}}
    - {cel: {expression: a}}
    config:
    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: constraint1, expression: c}}
`)
	n, err := convert.ToCelset(o, "constraint")
	require.NoError(t, err)
	require.Equal(t, 3, n)
	claim := &resourceapi.ResourceClaim{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, claim))
	resolved, err := v1alpha1.Resolve(claim, noClasses{})
	require.NoError(t, err)
	var got []string
	for _, constraint := range resolved {
		got = append(got, fmt.Sprint(constraint.Index, constraint.Name, constraint.Expression, constraint.Requests))
	}
	require.Equal(t, []string{"0constraint1c[]", "1constraint2a[mla]", "2constraint3b[]", "3constraint2a[]"}, got)
}

func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ devices, want string }{
		"not a list":         {`{constraints: {}}`, "spec.devices.constraints: must be a list"},
		"not an object":      {`{constraints: [x]}`, "spec.devices.constraints[0]: must be an object"},
		"no devices":         {`x`, "spec.devices: must be an object"},
		"no expression":      {`{constraints: [{cel: {}}]}`, "spec.devices.constraints[0].cel.expression: must be a CEL expression"},
		"a number":           {`{constraints: [{cel: {expression: 1}}]}`, "cel.expression: must be a CEL expression"},
		"not even that":      {`{constraints: [{cel: x}]}`, "spec.devices.constraints[0].cel: must be an object"},
		"unknown field":      {`{constraints: [{cel: {expression: x, cost: 1}}]}`, `unknown field "cost"`},
		"two in one":         {`{constraints: [{cel: {expression: x}, distinctAttribute: a/b}]}`, "has cel and distinctAttribute"},
		"config not objects": {`{constraints: [{cel: {expression: x}}], config: [1]}`, "spec.devices.config[0]: must be an object"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: "+test.devices+"}}")
			_, err := convert.ToCelset(o, "constraint")
			require.ErrorContains(t, err, test.want)
		})
	}
}

const preferring = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  devices:
    requests: [{name: mla, exactly: {deviceClassName: x, count: 2}}]
    constraints: [CONSTRAINT]
    config:
    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDevicePreference, name: constraint1, type: Expression, expression: "1"}}
`

// TestPreferencesStay checks that the conversion keeps preferences, and that new definitions don't get the name of a
// preference.
func TestPreferencesStay(t *testing.T) {
	o := object(t, strings.ReplaceAll(preferring, "CONSTRAINT", `{cel: {expression: "true"}}`))
	n, err := convert.ToCelset(o, "constraint")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, object(t, strings.ReplaceAll(preferring, "CONSTRAINT", "{matchAttribute: celset.dev/constraint1}")+
		"    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: constraint1, expression: \"true\"}}\n"), o)
}
