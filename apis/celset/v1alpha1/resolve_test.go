// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// twoRequests is a claim with a request of class mla, and a request with alternatives of the classes gpu and nic.
const twoRequests = `
requests:
- {name: a, exactly: {deviceClassName: mla}}
- {name: b, firstAvailable: [{name: big, deviceClassName: gpu}, {name: small, deviceClassName: nic}]}
`

func TestResolveUnreadableClass(t *testing.T) {
	const devices = twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`
	const at = `ResourceClaim default/four: spec.devices.constraints[0].matchAttribute: `
	for name, tc := range map[string]struct {
		err      error
		want     string
		wantType field.ErrorType
	}{
		"missing": {
			err:      apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), "mla"),
			want:     at + `Not found: "celset.dev/ring4": can't look up the constraint in DeviceClass mla: deviceclasses.resource.k8s.io "mla" not found`,
			wantType: field.ErrorTypeNotFound,
		},
		"unavailable": {
			err:      context.DeadlineExceeded,
			want:     at + `Internal error: celset.dev/ring4: can't look up the constraint in DeviceClass mla: context deadline exceeded`,
			wantType: field.ErrorTypeInternal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			fake := classes()
			fake.errs["mla"] = tc.err
			_, err := Resolve(claimOf(t, devices), fake)
			require.EqualError(t, err, tc.want)
			require.ErrorIs(t, err, tc.err)
			fieldErr, ok := errors.AsType[*field.Error](err)
			require.True(t, ok)
			require.Equal(t, tc.wantType, fieldErr.Type)
			require.Equal(t, OriginUnavailableClass, fieldErr.Origin)
			require.Equal(t, apierrors.IsNotFound(tc.err), apierrors.IsNotFound(err))
		})
	}
}

func TestResolveTemplate(t *testing.T) {
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "four"}}
	template.Spec.Spec = claimOf(t, twoRequests+`constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`).Spec
	got, err := TemplateCarrier(template).Resolve(classes(classOf("mla", definition(t, "ring4", "true"))))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "DeviceClass mla spec.config[0]", got[0].Source.String())

	_, err = TemplateCarrier(template).Resolve(classes(classOf("mla")))
	require.EqualError(t, err, `ResourceClaimTemplate default/four: spec.spec.devices.constraints[0].matchAttribute: Not found: "celset.dev/ring4": `+
		`no CELDeviceConstraint of that name in spec.spec.devices.config of the ResourceClaimTemplate, spec.config of DeviceClass mla: define it in one of them`)
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

// TestHasDefaults tests that HasDefaults finds a default however the JSON spells its field, and finds nothing else.
func TestHasDefaults(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"enforcement": "Always"}`:                                     true,
		`{"\u0065nforcement": "Always"}`:                                true,
		`{"enforcement": "\u0041lways"}`:                                true,
		`{"enforcement": "perhaps"}`:                                    true,
		`{"enforcement": true}`:                                         true,
		`{"enforcement": "OnReference"}`:                                false,
		`{"enforcement": ""}`:                                           false,
		`{"enforcement": null}`:                                         false,
		`{"Enforcement": "Always"}`:                                     false,
		`{"enforcement": "OnReference", "enforcement": "Always"}`:       true,
		`{"name": "enforcement"}`:                                       false,
		`{"default": true}`:                                             true,
		`{"default": "perhaps"}`:                                        true,
		`{"default": false}`:                                            false,
		`{"default": null}`:                                             false,
		`{"name": "\u0061"}`:                                            false,
		`{"spec": {"enforcement": "Always"}}`:                           false,
		`{"enforcement": "Always"`:                                      false,
		`["enforcement"]`:                                               false,
		`{"kind": "CELDevicePreference", "enforcement": "Always"}`:      false,
		`{"kind": "CELDevice\u0050reference", "enforcement": "Always"}`: false,
		`{"kind": "CELDeviceConstraint", "name": "a"}`:                  false,
		`{"kind": "CELDeviceConstraint", "enforcement": "Always"}`:      true,
		`{"kind": "CELDevicePreference", "name": "a", "enforcement": 1`: false,
		``: false,
	} {
		require.Equal(t, want, HasDefaults(classOf("x", parameters(DriverName, raw))), raw)
	}
	require.False(t, HasDefaults(classOf("x", parameters("x.example.com", `{"enforcement": "Always"}`))))
}
