// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// twoRequests has the classes mla, gpu and nic, the latter two as alternatives.
const twoRequests = `
requests:
- {name: a, exactly: {deviceClassName: mla}}
- {name: b, firstAvailable: [{name: big, deviceClassName: gpu}, {name: small, deviceClassName: nic}]}
`

const ownRing4 = `
config:
- {opaque: {driver: driver.example.com, parameters: {}}}
- {opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring4, expression: own}}}
`

func classSource(name, path string, index int) Source {
	return Source{Object: ObjectReference{Kind: "DeviceClass", Name: name}, Field: path, Index: index}
}

func TestResolve(t *testing.T) {
	own := Source{
		Object: ObjectReference{Kind: "ResourceClaim", Namespace: "default", Name: "four"},
		Field:  "spec.devices.config[1]", Index: 1,
	}
	broken := parameters(DriverName, `{}`)
	mla := classOf("mla", definition(t, "ring4", "mla"))
	gpu := classOf("gpu", definition(t, "pair", "gpu"), definition(t, "ring4", "mla"))
	nic := classOf("nic", definition(t, "ring4", "nic"))
	for name, tc := range map[string]struct {
		devices string
		classes *fakeClasses
		want    []Constraint
		// wantAsked are the classes that were read.
		wantAsked []string
	}{
		"neither reference nor definition": {
			devices: twoRequests + `constraints: [{matchAttribute: example.com/numa}]`,
			classes: classes(),
		},
		"unreferenced definition": {devices: twoRequests + ownRing4, classes: classes()},
		"in the claim, classes not read": {
			devices: twoRequests + ownRing4 + `constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`,
			classes: classes(classOf("mla", broken)),
			want:    []Constraint{{Index: 0, Requests: []string{"a"}, Name: "ring4", Expression: "own", Source: own}},
		},
		"in the class of the covered request": {
			devices:   twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`,
			classes:   classes(mla, nic),
			want:      []Constraint{{Requests: []string{"a"}, Name: "ring4", Expression: "mla", Source: classSource("mla", "spec.config[0]", 0)}},
			wantAsked: []string{"mla"},
		},
		"in the class of one alternative": {
			devices:   twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [b/small]}]`,
			classes:   classes(nic, classOf("gpu", broken)),
			want:      []Constraint{{Requests: []string{"b/small"}, Name: "ring4", Expression: "nic", Source: classSource("nic", "spec.config[0]", 0)}},
			wantAsked: []string{"nic"},
		},
		"in one of the classes": {
			devices:   twoRequests + `constraints: [{matchAttribute: celset.dev/pair}]`,
			classes:   classes(mla, gpu, nic),
			want:      []Constraint{{Name: "pair", Expression: "gpu", Source: classSource("gpu", "spec.config[0]", 0)}},
			wantAsked: []string{"mla", "gpu", "nic"},
		},
		"two classes agree": {
			devices:   twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [b/big, a]}]`,
			classes:   classes(mla, gpu),
			want:      []Constraint{{Requests: []string{"b/big", "a"}, Name: "ring4", Expression: "mla", Source: classSource("mla", "spec.config[0]", 0)}},
			wantAsked: []string{"mla", "gpu"},
		},
		"order of constraints, each class read once": {
			devices: twoRequests + ownRing4 + `
constraints:
- {matchAttribute: celset.dev/pair, requests: [b/big]}
- {matchAttribute: example.com/numa}
- {matchAttribute: celset.dev/ring4}
- {matchAttribute: celset.dev/pair, requests: [b/big, a]}
`,
			classes: classes(mla, gpu),
			want: []Constraint{
				{Index: 0, Requests: []string{"b/big"}, Name: "pair", Expression: "gpu", Source: classSource("gpu", "spec.config[0]", 0)},
				{Index: 2, Name: "ring4", Expression: "own", Source: own},
				{Index: 3, Requests: []string{"b/big", "a"}, Name: "pair", Expression: "gpu", Source: classSource("gpu", "spec.config[0]", 0)},
			},
			wantAsked: []string{"gpu", "mla"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claimOf(t, tc.devices)
			before := claim.DeepCopy()
			got, err := Resolve(claim, tc.classes)
			require.NoError(t, err)
			for i := range tc.want {
				tc.want[i].OnError = OnErrorAbort
			}
			require.Empty(t, cmp.Diff(tc.want, got))
			require.Empty(t, cmp.Diff(tc.wantAsked, tc.classes.asked))
			require.Empty(t, cmp.Diff(before, claim), "claim was modified")
		})
	}
}

func TestResolveErrors(t *testing.T) {
	const all = twoRequests + `constraints: [{matchAttribute: celset.dev/ring4}]`
	const at = `ResourceClaim default/four: spec.devices.constraints[0].matchAttribute: `
	none := []*resourceapi.DeviceClass{classOf("mla"), classOf("gpu"), classOf("nic")}
	for name, tc := range map[string]struct {
		devices string
		classes []*resourceapi.DeviceClass
		want    string
	}{
		"nowhere": {
			devices: all, classes: none,
			want: at + `Not found: "celset.dev/ring4": no CELDeviceConstraint of that name in spec.devices.config of the ResourceClaim, ` +
				`spec.config of DeviceClass mla, spec.config of DeviceClass gpu, spec.config of DeviceClass nic: define it in one of them`,
		},
		"in a class that is not covered": {
			devices: twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [b/big]}]`,
			classes: []*resourceapi.DeviceClass{classOf("mla", definition(t, "ring4", "true")), classOf("gpu")},
			want: at + `Not found: "celset.dev/ring4": no CELDeviceConstraint of that name in spec.devices.config of the ResourceClaim, ` +
				`spec.config of DeviceClass gpu: define it in one of them`,
		},
		"two classes differ in variables": {
			devices: all,
			classes: []*resourceapi.DeviceClass{
				classOf("mla"),
				classOf("gpu", definition(t, "ring4", "true", Variable{Name: "a", Expression: "1"})),
				classOf("nic", definition(t, "ring4", "true", Variable{Name: "a", Expression: "2"})),
			},
			want: at + `Invalid value: "celset.dev/ring4": DeviceClass gpu spec.config[0] and DeviceClass nic spec.config[0] define it differently: ` +
				`make them equal, or define it in the claim`,
		},
		"two classes differ": {
			devices: all,
			classes: []*resourceapi.DeviceClass{
				classOf("mla"),
				classOf("gpu", definition(t, "ring4", "gpu")),
				classOf("nic", definition(t, "pair", "gpu"), definition(t, "ring4", "nic")),
			},
			want: at + `Invalid value: "celset.dev/ring4": DeviceClass gpu spec.config[0] and DeviceClass nic spec.config[1] define it differently: ` +
				`make them equal, or define it in the claim`,
		},
		"twice in the claim": {
			devices: twoRequests + ownRing4 + `
- {opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: ring4, expression: own}}}
constraints: [{matchAttribute: celset.dev/ring4}]
`,
			want: `ResourceClaim default/four: spec.devices.config[2].opaque.parameters.name: Duplicate value: "ring4": already defined at spec.devices.config[1]: rename or remove one of them`,
		},
		"twice in a class": {
			devices: twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`,
			classes: []*resourceapi.DeviceClass{classOf("mla", definition(t, "ring4", "1"), definition(t, "ring4", "2"))},
			want: at + `Invalid value: "celset.dev/ring4": DeviceClass mla: spec.config[1].opaque.parameters.name: Duplicate value: "ring4": ` +
				`already defined at spec.config[0]: rename or remove one of them`,
		},
		"malformed in a consulted class, other name": {
			devices: twoRequests + `constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`,
			classes: []*resourceapi.DeviceClass{classOf("mla", definition(t, "ring4", "1"), definition(t, "pair", ""))},
			want: at + `Invalid value: "celset.dev/ring4": DeviceClass mla: spec.config[1].opaque.parameters.expression: Required value: ` +
				"must be a CEL expression over `devices` that returns a bool",
		},
		"malformed in the claim, unreferenced": {
			devices: `config: [{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: four, expression: ""}}}]`,
			want:    "ResourceClaim default/four: spec.devices.config[0].opaque.parameters.expression: Required value: must be a CEL expression over `devices` that returns a bool",
		},
		"unknown field in the claim": {
			devices: `config: [{opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: four, cel: "true"}}}]`,
			want:    "ResourceClaim default/four: spec.devices.config[0].opaque.parameters.cel: Invalid value: unknown field (field names are case-sensitive, each may be set once)",
		},
		"distinctAttribute": {
			devices: twoRequests + ownRing4 + `constraints: [{distinctAttribute: celset.dev/ring4}]`,
			want: "ResourceClaim default/four: spec.devices.constraints[0].distinctAttribute: Forbidden: " +
				"the domain celset.dev is for CEL device constraints: use matchAttribute: celset.dev/ring4",
		},
		"every constraint is reported": {
			devices: `
requests: [{name: a, exactly: {deviceClassName: mla}}]
constraints: [{matchAttribute: celset.dev/ring4}, {matchAttribute: celset.dev/pair}]
`,
			classes: none,
			want: at + `Not found: "celset.dev/ring4": no CELDeviceConstraint of that name in spec.devices.config of the ResourceClaim, spec.config of DeviceClass mla: define it in one of them; ` +
				`spec.devices.constraints[1].matchAttribute: Not found: "celset.dev/pair": no CELDeviceConstraint of that name in spec.devices.config of the ResourceClaim, spec.config of DeviceClass mla: define it in one of them`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Resolve(claimOf(t, tc.devices), classes(tc.classes...))
			require.EqualError(t, err, tc.want)
			require.Empty(t, got)
			var fieldErr *field.Error
			require.ErrorAs(t, err, &fieldErr)
		})
	}
}

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
			want:     at + `Not found: "celset.dev/ring4": can't look it up in DeviceClass mla: deviceclasses.resource.k8s.io "mla" not found`,
			wantType: field.ErrorTypeNotFound,
		},
		"unavailable": {
			err:      context.DeadlineExceeded,
			want:     at + `Internal error: celset.dev/ring4: can't look it up in DeviceClass mla: context deadline exceeded`,
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
