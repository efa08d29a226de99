// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestClassDefinitions(t *testing.T) {
	object := ObjectReference{Kind: "DeviceClass", Name: "mla.example.com"}
	a, b := definition(t, "a", "1 == 1"), definition(t, "b", "2 == 2")
	other := parameters("driver.example.com", `{"any":["thing"]}`)
	for name, tc := range map[string]struct {
		config  []resourceapi.DeviceConfiguration
		want    []Definition
		wantErr string
	}{
		"none":   {},
		"others": {config: []resourceapi.DeviceConfiguration{other, {}}},
		"two": {
			config: []resourceapi.DeviceConfiguration{b, other, a},
			want: []Definition{
				{Name: "b", Expression: "2 == 2", Source: Source{Object: object, Field: "spec.config[0]", Index: 0}},
				{Name: "a", Expression: "1 == 1", Source: Source{Object: object, Field: "spec.config[2]", Index: 2}},
			},
		},
		"same name twice": {
			config:  []resourceapi.DeviceConfiguration{a, other, definition(t, "a", "2 == 2")},
			want:    []Definition{{Name: "a", Expression: "1 == 1", Source: Source{Object: object, Field: "spec.config[0]", Index: 0}}},
			wantErr: `DeviceClass mla.example.com: spec.config[2].opaque.parameters.name: Duplicate value: "a": already defined at spec.config[0]: rename or remove one of them`,
		},
		"same definition twice": {
			config:  []resourceapi.DeviceConfiguration{a, a},
			want:    []Definition{{Name: "a", Expression: "1 == 1", Source: Source{Object: object, Field: "spec.config[0]", Index: 0}}},
			wantErr: `DeviceClass mla.example.com: spec.config[1].opaque.parameters.name: Duplicate value: "a": already defined at spec.config[0]: rename or remove one of them`,
		},
		"malformed, invalid and valid": {
			config: []resourceapi.DeviceConfiguration{parameters(DriverName, `[]`), definition(t, "", "true"), a},
			want:   []Definition{{Name: "a", Expression: "1 == 1", Source: Source{Object: object, Field: "spec.config[2]", Index: 2}}},
			wantErr: "DeviceClass mla.example.com: spec.config[0].opaque.parameters: Invalid value: must be an object, but is: array; " +
				"spec.config[1].opaque.parameters.name: Required value: claims refer to it as matchAttribute celset.dev/<name>",
		},
		"no parameters": {
			config:  []resourceapi.DeviceConfiguration{{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: DriverName}}},
			wantErr: "DeviceClass mla.example.com: spec.config[0].opaque.parameters: Required value: must be a CELDeviceConstraint or CELDevicePreference",
		},
	} {
		t.Run(name, func(t *testing.T) {
			definitions, err := ClassDefinitions(classOf("mla.example.com", tc.config...))
			for i := range tc.want {
				tc.want[i].OnError = OnErrorAbort
			}
			require.Empty(t, cmp.Diff(tc.want, definitions))
			if tc.wantErr == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.wantErr)
		})
	}
}

func TestDefinitionMadeInGo(t *testing.T) {
	configuration := parameters(DriverName, "")
	configuration.Opaque.Parameters = runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "a", "expression": "true",
	}}}
	definitions, err := ClassDefinitions(classOf("mla.example.com", configuration))
	require.NoError(t, err)
	require.Len(t, definitions, 1)
	require.Equal(t, "a", definitions[0].Name)
}

func TestClaimDefinitions(t *testing.T) {
	const devices = `
requests: [{name: r, exactly: {deviceClassName: x}}]
config:
- {opaque: {driver: driver.example.com, parameters: {}}}
- requests: [r]
  opaque:
    driver: celset.dev
    parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring4, expression: "true"}
`
	claim := claimOf(t, devices)
	require.True(t, HasDefinition(claim))
	require.False(t, HasReference(claim))
	template := &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "pair-"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: claim.Spec},
	}
	for want, carrier := range map[string]Carrier{
		"ResourceClaim default/four spec.devices.config[1]":                ClaimCarrier(claim),
		"ResourceClaimTemplate default/pair-* spec.spec.devices.config[1]": TemplateCarrier(template),
	} {
		definitions, err := carrier.Definitions()
		require.NoError(t, err)
		require.Len(t, definitions, 1)
		require.Equal(t, "ring4", definitions[0].Name)
		require.Equal(t, "true", definitions[0].Expression)
		require.Equal(t, 1, definitions[0].Source.Index)
		require.Equal(t, want, definitions[0].Source.String())
	}
}

func TestUnreferenced(t *testing.T) {
	claim := claimOf(t, `constraints: [{matchAttribute: celset.dev/used}, {matchAttribute: example.com/idle}]`)
	for _, name := range []string{"late", "used", "idle", "4bad"} {
		claim.Spec.Devices.Config = append(claim.Spec.Devices.Config,
			resourceapi.DeviceClaimConfiguration{DeviceConfiguration: definition(t, name, "true")})
	}
	require.Equal(t, []string{"late", "idle"}, Unreferenced(&claim.Spec))
	require.Empty(t, Unreferenced(&claimOf(t, `constraints: [{matchAttribute: celset.dev/used}]`).Spec))
}

func TestHasDefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		devices string
		want    bool
	}{
		"nothing":        {devices: `{}`},
		"reference only": {devices: `constraints: [{matchAttribute: celset.dev/a}]`},
		"other driver":   {devices: `config: [{opaque: {driver: x.example.com, parameters: {kind: CELDeviceConstraint}}}, {requests: [a]}]`},
		"malformed":      {devices: `config: [{requests: [a]}, {opaque: {driver: celset.dev, parameters: 3}}]`, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, HasDefinition(claimOf(t, tc.devices)))
		})
	}
}
