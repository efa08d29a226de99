// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

func TestReadSet(t *testing.T) {
	environment, err := NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for expression, want := range map[string][]AttributeName{
		"true": {},
		"devices.all(d, d.driver == 'x' && d.capacity['a'].memory.isInteger())":                             {},
		"devices.all(d, d.attributes['a'].x == d.attributes['b']['y'])":                                     {{"a", "x"}, {"b", "y"}},
		"devices.all(d, has(d.attributes['a'].x))":                                                          {{"a", "x"}},
		"devices.all(d, 'x' in d.attributes['a'])":                                                          {{"a", "x"}},
		"devices.all(d, d.attributes['a'].?x.orValue(1) == 1 && d.attributes['a'][?'y'].hasValue())":        {{"a", "x"}, {"a", "y"}},
		"devices.all(d, devices.exists(o, o.attributes['a'].id in d.attributes['a'].peers.split(',')))":     {{"a", "id"}, {"a", "peers"}},
		"devices[0].attributes['a'].x == 1":                                                                 {{"a", "x"}},
		"cel.bind(first, devices[0], first.attributes['a'].x == 1)":                                         {{"a", "x"}},
		"devices.all(d, d.attributes['a'].list[0] == 1)":                                                    {{"a", "list"}},
		"devices.filter(d, d.attributes['a'].x == 1).map(d, d.attributes['a'].y).max() == 3":                {{"a", "x"}, {"a", "y"}},
		"devices.all(d, 'a' in d.attributes)":                                                               nil,
		"devices.all(d, d.attributes['a'].exists(k, k == 'x'))":                                             nil,
		"devices.all(d, devices.all(o, d.attributes['a'] == o.attributes['a']))":                            nil,
		"devices.all(d, ['x', 'y'].all(k, d.attributes['a'][k] == 1))":                                      nil,
		"devices.all(d, dyn(d).attributes['a'].x == 1 && dyn([d])[0].driver == 'x')":                        nil,
		"devices.all(d, dyn(d)['attributes']['a']['x'] == 1)":                                               nil,
		"devices.all(d, dyn(d)['attri' + 'butes'] == 1)":                                                    nil,
		"cel.bind(all, devices.map(d, d.attributes), all[0]['a'].x == 1)":                                   nil,
		"{'d': dyn(devices[0])}['d'].attributes['a'].x == 1":                                                {{"a", "x"}},
		"devices.all(d, d.attributes['a'].x == 1) && devices.map(d, d.attributes['b']).exists(m, m.y == 1)": nil,
	} {
		t.Run(expression, func(t *testing.T) {
			compiled, err := environment.Compile(t.Context(), expression)
			require.NoError(t, err)
			got := compiled.ReadSet()
			if want == nil {
				require.True(t, got.All)
				return
			}
			require.False(t, got.All)
			names := map[AttributeName]bool{}
			for _, name := range want {
				names[name] = true
			}
			require.Equal(t, names, got.Attributes)
		})
	}
}
