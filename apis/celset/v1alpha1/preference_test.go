// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const typedPreference = `"apiVersion": "celset.dev/v1alpha1", "kind": "CELDevicePreference", `

// preferring makes a claim with two requests: a of class x, and b with the alternatives l of class w and m of class z.
func preferring(t *testing.T, entries ...resourceapi.DeviceConfiguration) *resourceapi.ResourceClaim {
	claim := claimOf(t, `requests: [{name: a, exactly: {deviceClassName: x}}, {name: b, firstAvailable: [{name: l, deviceClassName: w}, {name: m, deviceClassName: z}]}]`)
	for _, entry := range entries {
		claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: entry})
	}
	return claim
}

// TestPreferenceMadeInGo tests a preference that was made in Go, in a template.
func TestPreferenceMadeInGo(t *testing.T) {
	entry := parameters(DriverName, "")
	entry.Opaque.Parameters = runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "celset.dev/v1alpha1", "kind": PreferenceKind, "name": "near", "type": "Expression", "expression": "1",
	}}}
	template := &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "pair-"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: preferring(t, entry).Spec},
	}
	got, err := TemplateCarrier(template).Preferences()
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "ResourceClaimTemplate default/pair-* spec.spec.devices.config[0]", got[0].Source.String())
	require.Equal(t, "near", got[0].Label())
}

func TestHasPreference(t *testing.T) {
	for raw, want := range map[string]bool{
		`{` + typedPreference + `"name": "a"}`:                           true,
		`{"kind": "CELDevicePreference"}`:                                true,
		`{"kind": "CELDevice\u0050reference"}`:                           true,
		`{"k\u0069nd": "CELDevicePreference"}`:                           true,
		`{"Kind": "CELDevicePreference"}`:                                false,
		`{"kind": ["CELDevicePreference"]}`:                              false,
		`{"kind": "CELDeviceConstraint", "name": "CELDevicePreference"}`: false,
		`{"metadata": {"kind": "CELDevicePreference"}}`:                  false,
		`["CELDevicePreference"]`:                                        false,
		`"CELDevicePreference"`:                                          false,
		`{"kind": "CELDevicePreference"`:                                 false,
		`{"kind": "CELDevicePreference", "kind": "CELDeviceConstraint"}`: false,
		`null`: false, ``: false,
	} {
		entry := parameters(DriverName, raw)
		none := func(string) bool { return false }
		require.Equal(t, want, HasPreference(preferring(t, entry), none), raw)
		require.Equal(t, want, HasPreferences(classOf("x", entry)), raw)
		if raw != "" {
			require.Equal(t, !want, HasDefinition(preferring(t, entry)), "each entry of our driver is one or the other: %s", raw)
		}
		require.True(t, HasPreference(preferring(t), func(name string) bool { return name == "z" }))
	}
	require.False(t, HasPreferences(classOf("x", parameters("x.example.com", `{`+typedPreference+`}`))))
}

// FuzzPreferences decodes any parameters. Nothing may panic, and each entry is either a constraint or a preference. A valid
// preference must have a name, and either an expression or a policy.
func FuzzPreferences(f *testing.F) {
	for _, seed := range []string{
		`{` + typedPreference + `"name": "a", "type": "Expression", "expression": "1"}`, `{` + typedPreference + `"name": "a", "type": "Policy", "policy": "KeepWhole"}`,
		`{` + typedPreference + `"name": "a", "type": "Expression", "expression": "1", "requests": ["a", null, "b/m"], "variables": [null, {}]}`,
		`{"kind": "CELDevice\u0050reference", "name": "\ud800"}`, `{}`, `[]`, `null`, ``, `"CELDevicePreference"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		class := classOf("x", parameters(DriverName, string(raw)))
		definitions, definitionErr := ClassDefinitions(class)
		preferences, err := ClassPreferences(class)
		require.LessOrEqual(t, len(definitions)+len(preferences), 1)
		require.False(t, definitionErr != nil && err != nil)
		for _, p := range preferences {
			require.NotEmpty(t, p.Name)
			require.NotEqual(t, p.Policy == "", strings.TrimSpace(p.Expression) == "")
			again := CELDevicePreference{Name: p.Name, Type: PreferenceTypeExpression, Expression: p.Expression, Policy: p.Policy, Variables: p.Variables}
			if p.Policy != "" {
				again.Type = PreferenceTypePolicy
			}
			written, marshalErr := json.Marshal(again)
			require.NoError(t, marshalErr)
			require.NotEmpty(t, written)
			require.Empty(t, ValidatePreference(&again, field.NewPath("p")))
		}
	})
}

func TestRequestsWithout(t *testing.T) {
	claim := preferring(t)
	all := RequestsWithout(claim, nil)
	require.NotEmpty(t, all)
	require.Empty(t, RequestsWithout(claim, []Preference{{Name: "a"}}), "about all requests")
	require.Equal(t, all[1:], RequestsWithout(claim, []Preference{{Name: "a", Requests: all[:1]}}))
	require.Equal(t, all, RequestsWithout(claim, []Preference{{Name: "a", Requests: []string{"none"}}}))
}
