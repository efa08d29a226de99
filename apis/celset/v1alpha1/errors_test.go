// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestObjectReferenceString(t *testing.T) {
	for want, ref := range map[string]ObjectReference{
		"":                       {},
		"ResourceClaim":          {Kind: "ResourceClaim"},
		"ResourceClaim ns/name":  {Kind: "ResourceClaim", Namespace: "ns", Name: "name"},
		"DeviceClass mla":        {Kind: "DeviceClass", Name: "mla"},
		"ResourceClaim ns/pod-*": {Kind: "ResourceClaim", Namespace: "ns", Name: "pod-*"},
	} {
		require.Equal(t, want, ref.String())
	}
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	required := field.Required(field.NewPath("spec", "a"), "")
	invalid := field.Invalid(field.NewPath("spec", "b"), 3, "must be even")
	err := &Error{
		Object: ObjectReference{Kind: "ResourceClaim", Namespace: "ns", Name: "c"},
		Errors: field.ErrorList{required, invalid},
		Causes: []error{cause},
	}
	require.EqualError(t, err, "ResourceClaim ns/c: spec.a: Required value; spec.b: Invalid value: 3: must be even")
	require.ErrorIs(t, err, required)
	require.ErrorIs(t, err, invalid)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, &Error{Errors: field.ErrorList{required}}, "spec.a: Required value")
}

// TestErrorOfClass checks that the class at fault can be told from an error
// about the claim.
func TestErrorOfClass(t *testing.T) {
	claim := claimOf(t, twoRequests+`constraints: [{matchAttribute: celset.dev/ring4, requests: [a]}]`)
	_, err := Resolve(claim, classes(classOf("mla", parameters(DriverName, `{}`))))
	outer, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, "ResourceClaim default/four", outer.Object.String())
	require.Len(t, outer.Causes, 1)
	inner, ok := errors.AsType[*Error](outer.Causes[0])
	require.True(t, ok)
	require.Equal(t, "DeviceClass mla", inner.Object.String())
	require.Equal(t, "spec.config[0].opaque.parameters.apiVersion", inner.Errors[0].Field)
}
