// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
)

// TestExpressions checks that every expression compiles, never fails, is true for some sets and false for others.
func TestExpressions(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	names := map[string]bool{}
	for _, e := range corpus.Expressions() {
		t.Run(e.Name, func(t *testing.T) {
			require.False(t, names[e.Name], "there are two of that name")
			names[e.Name] = true
			expression, err := environment.Compile(t.Context(), e.Text)
			require.NoError(t, err)
			seen := map[bool]int{}
			each(e, func(set []*device.Device) {
				satisfied, err := expression.Satisfied(t.Context(), set, nil)
				require.NoError(t, err)
				seen[satisfied]++
			})
			require.NotZero(t, seen[true], "no set satisfies it")
			require.NotZero(t, seen[false], "all sets satisfy it")
		})
	}
	t.Logf("%d expressions", len(names))
	require.GreaterOrEqual(t, len(names), 100)
}

// each calls f with every set of devices that the requests may get.
func each(e corpus.Expression, f func([]*device.Device)) {
	all := e.Hardware.Devices()
	values := make([]*device.Device, len(all))
	for i := range all {
		values[i] = device.New(all[i].Driver, &all[i].Device)
	}
	taken := make([]bool, len(all))
	var choose func(set []*device.Device, request, wanted, from int)
	choose = func(set []*device.Device, request, wanted, from int) {
		switch {
		case wanted > 0:
			for i := from; i < len(all); i++ {
				if !taken[i] && all[i].Driver == e.Requests[request].Driver {
					taken[i] = true
					choose(append(set, values[i]), request, wanted-1, i+1)
					taken[i] = false
				}
			}
		case request+1 < len(e.Requests):
			choose(set, request+1, e.Requests[request+1].Count, 0)
		default:
			f(set)
		}
	}
	choose(nil, -1, 0, 0)
}
