// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/cmd/kubectl-celset/convert"
)

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
		Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "d", "expression": "b", "default": true}`)},
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
