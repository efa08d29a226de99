// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

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

// A default is one however its field is written, and nothing else is.
func TestHasDefaults(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"default": true}`:                                         true,
		`{"d\u0065fault": true}`:                                    true,
		`{"default": "perhaps"}`:                                    true,
		`{"default": false}`:                                        false,
		`{"default": null}`:                                         false,
		`{"Default": true}`:                                         false,
		`{"default": false, "default": true}`:                       true,
		`{"name": "default"}`:                                       false,
		`{"name": "\u0061"}`:                                        false,
		`{"spec": {"default": true}}`:                               false,
		`{"default": true`:                                          false,
		`["default"]`:                                               false,
		`{"kind": "CELDevicePreference", "default": true}`:          false,
		`{"kind": "CELDevice\u0050reference", "default": true}`:     false,
		`{"kind": "CELDeviceConstraint", "name": "a"}`:              false,
		`{"kind": "CELDeviceConstraint", "default": true}`:          true,
		`{"kind": "CELDevicePreference", "name": "a", "default": 1`: false,
		``: false,
	} {
		require.Equal(t, want, HasDefaults(classOf("x", parameters(DriverName, raw))), raw)
	}
	require.False(t, HasDefaults(classOf("x", parameters("x.example.com", `{"default": true}`))))
}
