// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/celset/celset/cel/device"
)

func TestDriverOf(t *testing.T) {
	for selector, want := range map[string]string{
		"device.driver == 'a'": "a",
		"'a' == device.driver": "a",
		"device.attributes['a'].index == 1 && device.driver == 'a'":                           "a",
		"device.driver == 'a' && device.attributes['a'].x && device.allowMultipleAllocations": "a",
		"device.driver == 'a' && (device.driver == 'b' || true)":                              "a",
		"device.driver == 'a' || true":                                                        "",
		"!(device.driver == 'a')":                                                             "",
		"device.driver != 'a'":                                                                "",
		"device.driver.startsWith('a')":                                                       "",
		"device.driver == device.driver":                                                      "",
		"device.attributes['a'].driver == 'a'":                                                "",
		"['a'].all(d, device.driver == d)":                                                    "",
		"true ? device.driver == 'a' : false":                                                 "",
	} {
		compiled := dracel.GetCompiler(dracel.Features{}).CompileCELExpression(selector, dracel.Options{})
		require.Nil(t, compiled.Error, selector)
		checked, issues := compiled.Environment.Compile(selector)
		require.NoError(t, issues.Err(), selector)
		require.Equal(t, want, device.DriverOf(checked.NativeRep()), selector)
	}
}
