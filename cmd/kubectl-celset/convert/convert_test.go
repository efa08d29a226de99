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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
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

// There and back changes nothing, in either form.
func TestRoundTrip(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		before := drawClaim(t)
		o := before.DeepCopy()
		n, err := convert.ToCelset(o, "constraint")
		require.NoError(t, err)
		again, err := convert.ToCelset(o, "constraint")
		require.NoError(t, err)
		require.Zero(t, again, "converted twice")
		converted := o.DeepCopy()
		back, err := convert.ToKEP(t.Context(), o, noClasses{})
		require.NoError(t, err)
		require.Equal(t, n, back)
		if n > 0 {
			require.NotEmpty(t, o.GetAnnotations()[wellknown.AnnotationConstraintNames])
		}
		there := o.DeepCopy()
		unstructured.RemoveNestedField(there.Object, "metadata", "annotations")
		require.Empty(t, cmp.Diff(before.Object, there.Object))
		_, err = convert.ToCelset(o, "other")
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(converted.Object, o.Object))
	})
}

// drawClaim has constraints of both kinds and things that are not known.
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

// What is converted is what the scheduler resolves.
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

func TestNamesInTheAnnotation(t *testing.T) {
	claim := func(names string) *unstructured.Unstructured {
		o := object(t, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {constraints: [{cel: {expression: a}}, {cel: {expression: b}}]}}}")
		o.SetAnnotations(map[string]string{wellknown.AnnotationConstraintNames: names})
		return o
	}
	for names, want := range map[string]string{
		`{"0":"x","1":"x"}`: `which is the name of another expression`,
		`{"0":"1x"}`:        `parameters.name: Invalid value: "1x"`,
		`{"zero":"x"}`:      `"zero" is not a position`,
		`["x"]`:             `celset.dev/constraint-names`,
	} {
		_, err := convert.ToCelset(claim(names), "constraint")
		require.ErrorContains(t, err, want)
	}
	o := claim(`{"0":"constraint1","7":"gone"}`)
	_, err := convert.ToCelset(o, "constraint")
	require.NoError(t, err)
	constraints, _, err := unstructured.NestedSlice(o.Object, "spec", "devices", "constraints")
	require.NoError(t, err)
	require.Equal(t, []any{
		map[string]any{"matchAttribute": "celset.dev/constraint1"}, map[string]any{"matchAttribute": "celset.dev/constraint2"},
	}, constraints)
	require.Empty(t, o.GetAnnotations())
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

// TestPreferencesStay beside what comes from the KEP, and have names of their own.
func TestPreferencesStay(t *testing.T) {
	o := object(t, strings.ReplaceAll(preferring, "CONSTRAINT", `{cel: {expression: "true"}}`))
	n, err := convert.ToCelset(o, "constraint")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, object(t, strings.ReplaceAll(preferring, "CONSTRAINT", "{matchAttribute: celset.dev/constraint1}")+
		"    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: constraint1, expression: \"true\"}}\n"), o)
}

func withVariables(t *testing.T, expression string, variables ...string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  devices:
    requests: [{name: mla, exactly: {deviceClassName: x, count: 2}}]
    constraints: [{matchAttribute: celset.dev/a}]
    config:
    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: a}}
`)
	devices, _, err := unstructured.NestedMap(o.Object, "spec", "devices")
	require.NoError(t, err)
	parameters := devices["config"].([]any)[0].(map[string]any)["opaque"].(map[string]any)["parameters"].(map[string]any)
	var list []any
	for i, v := range variables {
		list = append(list, map[string]any{"name": fmt.Sprint("v", i), "expression": v})
	}
	parameters["expression"], parameters["variables"] = expression, list
	require.NoError(t, unstructured.SetNestedMap(o.Object, devices, "spec", "devices"))
	return o
}

// TestVariablesAreWrittenOut: the KEP has none.
func TestVariablesAreWrittenOut(t *testing.T) {
	o := withVariables(t, "devices.all(d, d.variables.v1 * 2 < 8)",
		"device.attributes['mla.example.com'].row", "variables.v0 + 1")
	n, err := convert.ToKEP(t.Context(), o, noClasses{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	constraints, _, err := unstructured.NestedSlice(o.Object, "spec", "devices", "constraints")
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"cel": map[string]any{
		"expression": `devices.all(d, (d.attributes["mla.example.com"].row + 1) * 2 < 8)`,
	}}}, constraints)
	_, found, err := unstructured.NestedSlice(o.Object, "spec", "devices", "config")
	require.NoError(t, err)
	require.False(t, found)
}

// TestVariablesThatCantBeWrittenOut stay, and so does the rest of the claim.
func TestVariablesThatCantBeWrittenOut(t *testing.T) {
	for name, test := range map[string]struct {
		o    *unstructured.Unstructured
		want string
	}{
		"too long": {
			withVariables(t, "devices.all(d, "+strings.Repeat("d.variables.v0 && ", 100)+"true)", "device.driver != '"+strings.Repeat("x", 200)+"'"),
			"the limit is 10240",
		},
		"no such variable": {withVariables(t, "devices.all(d, d.variables.v1)", "true"), "there is no variable v1"},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.o.DeepCopy()
			_, err := convert.ToKEP(t.Context(), test.o, noClasses{})
			require.ErrorContains(t, err, "constraint a has variables, which the KEP does not have, and they can't be written out in its expression")
			require.ErrorContains(t, err, test.want)
			require.Equal(t, before.Object["spec"].(map[string]any)["devices"].(map[string]any)["config"], test.o.Object["spec"].(map[string]any)["devices"].(map[string]any)["config"])
		})
	}
}

// TestFunctionsOfCelsetAreRefused: somebody else would not compile the result.
func TestFunctionsOfCelsetAreRefused(t *testing.T) {
	for expression, want := range map[string]string{
		"devices.ring(a, b, true) && devices.box(d, [1], [1]) && devices.ring(a, b, false)": "constraint a uses box, ring, which the KEP does not have",
		"devices.all(d, d.variables.v0.sameOrIncludes(1))":                                  "constraint a uses sameOrIncludes, which the KEP does not have",
	} {
		o := withVariables(t, expression, "device.attributes['mla.example.com'].row")
		before := o.DeepCopy()
		_, err := convert.ToKEP(t.Context(), o, noClasses{})
		require.ErrorContains(t, err, want)
		require.Equal(t, before, o)
	}
}

type oneClass struct{ class *resourceapi.DeviceClass }

func (c oneClass) Get(string) (*resourceapi.DeviceClass, error) { return c.class, nil }

// TestDefaultsAreWrittenOut: in the KEP a class demands nothing, so the claim does.
func TestDefaultsAreWrittenOut(t *testing.T) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "d", "expression": "b", "enforcement": "Always"}`)},
	}}}}
	for version, request := range map[string]string{"v1": "{name: mla, exactly: {deviceClassName: x, count: 2}}", "v1beta1": "{name: mla, deviceClassName: x, count: 2}"} {
		o := object(t, `
apiVersion: resource.k8s.io/`+version+`
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  devices:
    requests: [`+request+`]
    constraints: [{matchAttribute: celset.dev/a}]
    config:
    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: a, expression: a}}
`)
		n, err := convert.ToKEP(t.Context(), o, oneClass{class})
		require.NoError(t, err)
		require.Equal(t, 2, n, version)
		devices := o.Object["spec"].(map[string]any)["devices"].(map[string]any)
		require.Equal(t, []any{
			map[string]any{"cel": map[string]any{"expression": "a"}},
			map[string]any{"cel": map[string]any{"expression": "b"}, "requests": []any{"mla"}},
		}, devices["constraints"], version)
	}
}
