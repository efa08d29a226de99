// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

func TestOutputType(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"devices.size() == 4":                            "bool",
		"devices[0].attributes['x.example.com'].healthy": "dyn",
	} {
		expression, err := environment.Compile(t.Context(), text)
		require.NoError(t, err)
		require.Equal(t, want, expression.OutputType())
	}
}
