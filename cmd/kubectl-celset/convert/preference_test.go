// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/convert"
)

const preferring = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  devices:
    requests: [{name: mla, exactly: {deviceClassName: x, count: 2}}]
    constraints: [CONSTRAINT]
    config:
    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDevicePreference, name: constraint1, expression: "1"}}
`

// TestPreferencesAreNotLost: the KEP has none, so that the claim stays as it is.
func TestPreferencesAreNotLost(t *testing.T) {
	for _, constraint := range []string{"", "{matchAttribute: celset.dev/a}"} {
		o := object(t, strings.ReplaceAll(preferring, "CONSTRAINT", constraint))
		before := o.DeepCopy()
		_, err := convert.ToKEP(t.Context(), o, noClasses{})
		require.ErrorContains(t, err, "ResourceClaim c: spec.devices.config[0]: preference constraint1: the KEP has no preferences: remove it first")
		require.Equal(t, before, o)
	}
}

// TestPreferencesStay beside what comes from the KEP, and have names of their own.
func TestPreferencesStay(t *testing.T) {
	o := object(t, strings.ReplaceAll(preferring, "CONSTRAINT", `{cel: {expression: "true"}}`))
	n, err := convert.ToCelset(o, "constraint")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, object(t, strings.ReplaceAll(preferring, "CONSTRAINT", "{matchAttribute: celset.dev/constraint1}")+
		"    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: constraint1, expression: \"true\"}}\n"), o)
}
