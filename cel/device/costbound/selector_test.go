// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package costbound_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/costbound"
)

func TestSelectors(t *testing.T) {
	judge, err := costbound.NewSelectors(cel.Config{})
	require.NoError(t, err)
	for _, text := range []string{
		"device.driver == 'gpu.example.com'",
		"device.attributes['gpu.example.com'].family == 'a' && device.attributes['gpu.example.com'].index < 4",
		"device.driver == 'a' && 'b' in device.attributes['a'] && device.attributes['a'].b.matches('^[a-z]+-[0-9]+$')",
		"device.capacity['gpu.example.com'].memory.compareTo(quantity('40Gi')) >= 0",
		"semver(string(device.attributes['a'].version)).isGreaterThan(semver('1.2.3'))",
		"device.attributes['a'].version.isGreaterThan(semver('1.2.3'))",
		"device.attributes['a'].names.exists(n, n.startsWith('x') || n in ['a', 'b', 'c'])",
		"device.attributes['a'].name.split('-').exists(p, p == 'x') && device.attributes['a'].name.replace('-', '_') == 'a_b'",
		"!has(device.attributes['a'].b) || device.attributes['a'].?b.orValue('x') == 'x'",
		"'%s-%d'.format([device.attributes['a'].name, 3]) == 'x-3'",
		"format.dns1123Label().validate(device.attributes['a'].name).hasValue() == false",
		"isURL(device.attributes['a'].name) && url(device.attributes['a'].name).getHost() == 'x'",
		"cidr('10.0.0.0/8').containsIP(device.attributes['a'].address)",
	} {
		_, err := judge.Judge(t.Context(), text, false)
		require.NoError(t, err, text)
	}
	for text, message := range map[string]string{
		"quantity('1e' + '2000000000') == quantity('1')":                                             "in quantity at line 1",
		"quantity('1e2000000000').isGreaterThan(quantity('1'))":                                      "in quantity at line 1",
		"device.driver.matches('((a{10}){10}){10}' + device.driver)":                                 "",
		"lists.range(900000).distinct().size() > 1":                                                  "in distinct at line 1",
		"'" + strings.Repeat("a", 4000) + "'.replace('', '" + strings.Repeat("b", 4000) + "') == ''": "in replace at line 1",
		strings.Repeat("[", 60) + strings.Repeat("]", 60) + " == []":                                 "a type has more than 32 names",
		"'%.2000000000f'.format([1.5]) == ''":                                                        "in format at line 1",
	} {
		_, err := judge.Judge(t.Context(), text, false)
		require.ErrorContains(t, err, message, text)
	}
}
