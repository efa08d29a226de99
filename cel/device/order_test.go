// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/corpus"
)

func TestOrderDependence(t *testing.T) {
	environment, err := NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for expression, want := range map[string]Place{
		"true": {},
		"devices.all(d, devices.exists(o, d == o))":                                                          {},
		"devices.map(d, d.driver).distinct().size() == 1":                                                    {},
		"devices.map(d, d.attributes['a'].x).max() - 1 == size(devices)":                                     {},
		"devices.all(d, d.attributes['a'].list[0] == 1)":                                                     {},
		"devices.map(d, d.driver).sort() == ['a', 'b']":                                                      {},
		"devices.map(d, d.driver).sort()[0] == 'a'":                                                          {},
		"devices.filter(d, d.driver == 'x') == []":                                                           {},
		"[] != devices.filter(d, d.driver == 'x')":                                                           {},
		"devices.all(i, d, devices.all(j, o, i == j || d.driver != o.driver))":                               {},
		"devices.all(i, d, devices.exists(j, o, i != j && d.driver == o.driver))":                            {},
		"{'a': 1, 'b': 2}.all(k, v, k < 'c' && devices.size() > v)":                                          {},
		"['a'].all(i, s, i == 0 && devices.exists(d, d.driver == s))":                                        {},
		"sets.equivalent(devices.map(d, d.driver), ['a'])":                                                   {},
		"cel.bind(devices, [1, 2], devices[0] == 1)":                                                         {},
		"[[1, 2]].all(devices, devices[0] == 1)":                                                             {},
		"cel.bind(x, devices, x.all(d, d.driver == 'a'))":                                                    {},
		"'a' in devices.map(d, d.driver)":                                                                    {},
		"devices.all(d, d.driver == devices[0].driver)":                                                      {},
		"true && devices.all(d, d.driver != 'x' && devices[3].attributes['a'].x.y == d.attributes['a'].x.y)": {},
		"devices.all(d, has(d.attributes['a'].x) == has(devices[0].attributes['a'].x))":                      {},
		"devices.all(d, d.driver.lowerAscii() == devices[0].driver.lowerAscii())":                            {},
		"devices.all(d, d.driver == devices[0].driver || d.driver == 'a')":                                   {1, 35},
		"devices.all(d, d.driver != devices[0].driver)":                                                      {1, 35},
		"devices.exists(d, d.driver == devices[0].driver)":                                                   {1, 38},
		"devices.all(d, d.driver == devices[0].attributes['a'].driver)":                                      {1, 35},
		"devices.all(d, d.driver.size() == devices[0].driver.size() && devices[0].driver == 'a')":            {1, 70},
		"devices.filter(d, d.driver == 'a').all(d, d.driver == devices[0].driver)":                           {1, 62},
		"devices[0].driver == 'a'":                                                                           {1, 8},
		"devices[?0].hasValue()":                                                                             {1, 8},
		"true &&\n  devices.filter(d, d.driver == 'x')[0].driver == 'a'":                                     {2, 37},
		"cel.bind(x, devices, x[1].driver == 'a')":                                                           {1, 23},
		"cel.bind(x, devices.map(d, d.driver), x[1] == 'a')":                                                 {1, 40},
		"devices.map(d, d.driver) == ['a', 'b']":                                                             {1, 26},
		"devices.map(d, d.driver) + ['c'] != ['a', 'b', 'c']":                                                {1, 34},
		"devices.map(d, d.driver).join(',') == 'a,b'":                                                        {1, 30},
		"devices.map(d, d.driver).isSorted()":                                                                {1, 34},
		"devices.map(d, d.driver).indexOf('a') == 0":                                                         {1, 33},
		"(true ? devices : []).map(d, d.driver)[0] == 'a'":                                                   {1, 39},
		"devices.all(i, d, i > 0 || d.driver == 'a')":                                                        {1, 19},
		"devices.all(i, d, i == 0 || d.driver == 'a')":                                                       {1, 21},
		"devices.all(i, d, devices.all(j, o, i < j || d == o))":                                              {1, 37},
		"devices.transformList(i, d, i)[0] == 0":                                                             {1, 29},
		"[0, 1].all(i, devices[i].driver == 'a')":                                                            {1, 22},
		"devices.map(d, d.driver).reverse()[0] == 'a' || devices.map(d, d.driver)[1] == 'a'":                 {1, 35},
		"devices.exists(d, devices.filter(o, o != d).map(o, o.driver) == ['a'])":                             {1, 62},
		"devices.map(d, devices.map(o, o.driver)).all(l, true) || devices.distinct()[0] != null":             {1, 76},
	} {
		t.Run(expression, func(t *testing.T) {
			compiled, err := environment.Compile(t.Context(), expression)
			require.NoError(t, err)
			place, found := compiled.OrderDependence()
			require.Equal(t, want != Place{}, found)
			require.Equal(t, want, place)
		})
	}
}

// TestOrderDependenceOfTheCorpus names the real expressions that speak of places.
func TestOrderDependenceOfTheCorpus(t *testing.T) {
	environment, err := NewEnvironment(cel.Config{})
	require.NoError(t, err)
	var found []string
	for _, e := range corpus.Expressions() {
		compiled, err := environment.Compile(t.Context(), e.Text)
		require.NoError(t, err)
		if _, ok := compiled.OrderDependence(); ok {
			found = append(found, e.Name)
		}
	}
	require.Equal(t, []string{
		"ring: sorted and without gaps", "ring: by place",
		"coupled: the same roots in order", "coupled: by place", "pod: a plane",
		"pod: one generation", "host: bandwidth as a quantity", "host: one MTU", "host: a common rail",
		"host: no rail twice", "sockets: the last is on another socket",
		"sockets: two requests on different sockets",
	}, found)
}
