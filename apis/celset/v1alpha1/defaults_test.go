// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const typed = `"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", `

func byDefault(name, expression string) resourceapi.DeviceConfiguration {
	return parameters(DriverName, `{`+typed+`"name": "`+name+`", "expression": "`+expression+`", "default": true}`)
}

// TestDefaults has a class "ring" with the defaults a and b and a definition c that is none, and
// a class "pair" with another default a.
func TestDefaults(t *testing.T) {
	ring := classOf("ring", byDefault("a", "one"), byDefault("b", "two"), definition(t, "c", "three"))
	pair := classOf("pair", byDefault("a", "four"))
	plain := classOf("plain", definition(t, "c", "three"))
	for name, test := range map[string]struct {
		devices string
		want    []string
	}{
		"several": {`requests: [{name: x, exactly: {deviceClassName: ring, count: 2}}]`,
			[]string{"[x] a of DeviceClass ring spec.config[0] (default)", "[x] b of DeviceClass ring spec.config[1] (default)"}},
		"one":          {`requests: [{name: x, exactly: {deviceClassName: ring, count: 1}}]`, nil},
		"no count":     {`requests: [{name: x, exactly: {deviceClassName: ring}}]`, nil},
		"no default":   {`requests: [{name: x, exactly: {deviceClassName: plain, count: 4}}]`, nil},
		"admin access": {`requests: [{name: x, exactly: {deviceClassName: pair, count: 4, adminAccess: true}}]`, nil},
		"all":          {`requests: [{name: x, exactly: {deviceClassName: pair, allocationMode: All}}]`, []string{"[x] a of DeviceClass pair spec.config[0] (default)"}},
		"two requests, each for itself": {`requests: [{name: x, exactly: {deviceClassName: pair, count: 2}}, {name: z, exactly: {deviceClassName: pair, count: 3}}]`,
			[]string{"[x] a of DeviceClass pair spec.config[0] (default)", "[z] a of DeviceClass pair spec.config[0] (default)"}},
		"alternatives": {`requests: [{name: x, firstAvailable: [{name: l, deviceClassName: pair, count: 4}, {name: m, deviceClassName: plain, count: 4}, {name: s, deviceClassName: pair, count: 1}]}]`,
			[]string{"[x/l] a of DeviceClass pair spec.config[0] (default)"}},
		"the same reference":                     {`{requests: [{name: x, exactly: {deviceClassName: pair, count: 2}}], constraints: [{matchAttribute: celset.dev/a, requests: [x]}]}`, []string{"[x] a"}},
		"a reference to all that is one request": {`{requests: [{name: x, exactly: {deviceClassName: pair, count: 2}}], constraints: [{matchAttribute: celset.dev/a}]}`, []string{"[] a"}},
		"a reference to more": {`{requests: [{name: x, exactly: {deviceClassName: pair, count: 2}}, {name: z, exactly: {deviceClassName: plain, count: 1}}], constraints: [{matchAttribute: celset.dev/a}]}`,
			[]string{"[] a", "[x] a of DeviceClass pair spec.config[0] (default)"}},
		"a reference to another request": {`{requests: [{name: x, exactly: {deviceClassName: pair, count: 2}}, {name: z, exactly: {deviceClassName: pair, count: 2}}], constraints: [{matchAttribute: celset.dev/a, requests: [z]}]}`,
			[]string{"[z] a", "[x] a of DeviceClass pair spec.config[0] (default)"}},
		"a reference to an alternative": {`{requests: [{name: x, firstAvailable: [{name: l, deviceClassName: pair, count: 4}, {name: m, deviceClassName: pair, count: 3}]}], constraints: [{matchAttribute: celset.dev/a, requests: [x/l]}]}`,
			[]string{"[x/l] a", "[x/m] a of DeviceClass pair spec.config[0] (default)"}},
		"the claim's own definition of the name": {`{requests: [{name: x, exactly: {deviceClassName: pair, count: 2}}], constraints: [{matchAttribute: celset.dev/a, requests: [x]}],
			config: [{opaque: {driver: celset.dev, parameters: {` + typed + `name: a, expression: mine}}}]}`,
			[]string{"[x] a", "[x] a of DeviceClass pair spec.config[0] (default)"}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claimOf(t, test.devices)
			resolved, err := Resolve(claim, classes(ring, pair, plain))
			require.NoError(t, err)
			var got []string
			for _, c := range resolved {
				require.Equal(t, c.Default, c.Index == NoReference)
				got = append(got, "["+strings.Join(c.Requests, " ")+"] "+c.Label())
			}
			require.Equal(t, test.want, got)
			require.Equal(t, len(got) > 0, HasConstraints(claim, func(name string) bool { return name != "plain" }))
		})
	}
}

// TestMalformedDefaults: what says that it is a default keeps requests from being met until it is
// mended, and what does not concerns those who refer to it.
func TestMalformedDefaults(t *testing.T) {
	four := claimOf(t, `requests: [{name: x, exactly: {deviceClassName: ring, count: 4}}]`)
	for parameters, want := range map[string]string{
		`{"default": true}`:                                    "opaque.parameters.apiVersion: Required value",
		`{` + typed + `"name": "a", "default": true}`:          "opaque.parameters.expression: Required value",
		`{` + typed + `"name": "a", "default": "yes"}`:         "opaque.parameters.default: Invalid value",
		`{"kind": "Other", "default": 1}`:                      `opaque.parameters.kind: Unsupported value: "Other"`,
		`{` + typed + `"name": "a", "Default": true}`:          "",
		`{` + typed + `"name": "a", "default": false}`:         "",
		`{` + typed + `"name": "a", "default": null}`:          "",
		`{` + typed + `"name": "a", "expression": 1, "x": []}`: "",
	} {
		class := classOf("ring", byDefault("good", "true"), definition(t, "b", "true"))
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{})
		class.Spec.Config[2].Opaque = &resourceapi.OpaqueDeviceConfiguration{Driver: DriverName}
		class.Spec.Config[2].Opaque.Parameters.Raw = []byte(parameters)
		resolved, err := Resolve(four, classes(class))
		if want == "" {
			require.NoError(t, err, parameters)
			require.Len(t, resolved, 1)
			continue
		}
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `ResourceClaim default/four: spec.devices.requests[0].exactly.deviceClassName: Invalid value: "ring": DeviceClass ring: spec.config[2]`)
	}
}

func TestDefaultsAreForClassesOnly(t *testing.T) {
	claim := claimOf(t, `{requests: [{name: x, exactly: {deviceClassName: ring, count: 2}}], constraints: [{matchAttribute: celset.dev/a}]}`)
	claim.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: byDefault("a", "true")}}
	_, err := Resolve(claim, classes(classOf("ring")))
	require.EqualError(t, err, "ResourceClaim default/four: spec.devices.config[0].opaque.parameters.default: Forbidden: "+
		"only the definition of a DeviceClass can be a default: refer to it, or leave this out")
}

func TestDefaultsOfClassesThatCannotBeRead(t *testing.T) {
	claim := claimOf(t, `requests: [{name: x, exactly: {deviceClassName: ring, count: 2}}]`)
	none := classes()
	none.errs["ring"] = apierrors.NewNotFound(schema.GroupResource{Resource: "deviceclasses"}, "ring")
	resolved, err := Resolve(claim, none)
	require.NoError(t, err)
	require.Empty(t, resolved)

	none.errs["ring"] = errors.New("away")
	_, err = Resolve(claim, none)
	var failure *Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, OriginUnavailableClass, failure.Errors[0].Origin)
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
