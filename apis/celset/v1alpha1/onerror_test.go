// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

func onError(value string) resourceapi.DeviceConfiguration {
	return parameters(DriverName, `{`+typed+`"name": "a", "expression": "true", "onError": `+value+`}`)
}

func TestOnError(t *testing.T) {
	for value, want := range map[string]OnError{`""`: OnErrorAbort, `"Abort"`: OnErrorAbort, `"NodeDoesNotFit"`: OnErrorNodeDoesNotFit} {
		definitions, err := ClassDefinitions(classOf("x", onError(value)))
		require.NoError(t, err)
		require.Equal(t, want, definitions[0].OnError)
		claim := claimOf(t, `{requests: [{name: r, exactly: {deviceClassName: x, count: 1}}], constraints: [{matchAttribute: celset.dev/a}]}`)
		resolved, err := Resolve(claim, classes(classOf("x", onError(value))))
		require.NoError(t, err)
		require.Equal(t, want, resolved[0].OnError)
	}
	for value, want := range map[string]string{
		`"Ignore"`: `Unsupported value: "Ignore": supported values: "Abort", "NodeDoesNotFit"`,
		`"abort"`:  `Unsupported value: "abort": supported values: "Abort", "NodeDoesNotFit"`,
		`true`:     "Invalid value: must be a string, but is: bool",
	} {
		_, err := ClassDefinitions(classOf("x", onError(value)))
		require.EqualError(t, err, "DeviceClass x: spec.config[0].opaque.parameters.onError: "+want)
	}
}

// TestClassesAgreeOnErrors: what differs in this alone is another definition. Saying what is the
// default is no difference.
func TestClassesAgreeOnErrors(t *testing.T) {
	claim := claimOf(t, `{requests: [{name: r, exactly: {deviceClassName: x, count: 1}}, {name: s, exactly: {deviceClassName: z, count: 1}}], constraints: [{matchAttribute: celset.dev/a}]}`)
	_, err := Resolve(claim, classes(classOf("x", onError(`"Abort"`)), classOf("z", onError(`"NodeDoesNotFit"`))))
	require.ErrorContains(t, err, "DeviceClass x spec.config[0] and DeviceClass z spec.config[0] define it differently")
	_, err = Resolve(claim, classes(classOf("x", onError(`"Abort"`)), classOf("z", onError(`""`))))
	require.NoError(t, err)
}
