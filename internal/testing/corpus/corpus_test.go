// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
)

// Every expression compiles, fails for no set, and tells sets apart.
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

// Those for large machines compile, and fail for no set that was drawn.
func TestAsked(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	names := map[string]bool{}
	for _, e := range corpus.Asked() {
		require.False(t, names[e.Name], "there are two of the name %s", e.Name)
		names[e.Name] = true
		expression, err := environment.Compile(t.Context(), e.Text)
		require.NoError(t, err, e.Text)
		for range 20 {
			_, err := expression.Satisfied(t.Context(), drawn(random, e), nil)
			require.NoError(t, err, e.Text)
		}
	}
	require.GreaterOrEqual(t, len(names), 150)
}

// drawn is a set that the requests can get.
func drawn(random *rand.Rand, e corpus.Expression) []*device.Device {
	byDriver := map[string][]*device.Device{}
	for _, d := range e.Hardware.Devices() {
		byDriver[d.Driver] = append(byDriver[d.Driver], device.New(d.Driver, &d.Device))
	}
	var set []*device.Device
	for _, r := range e.Requests {
		places := random.Perm(len(byDriver[r.Driver]))[:r.Count]
		slices.Sort(places)
		for _, place := range places {
			set = append(set, byDriver[r.Driver][place])
		}
	}
	return set
}

// each calls f with every set that the requests can get.
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

func TestHardware(t *testing.T) {
	for _, e := range corpus.Expressions() {
		devices := e.Hardware.Devices()
		require.LessOrEqual(t, len(devices), 9, e.Hardware.Name)
		require.Equal(t, devices, e.Hardware.Devices(), "always the same")
		names := map[string]bool{}
		for _, d := range devices {
			require.False(t, names[d.Name], "%s has two %s", e.Hardware.Name, d.Name)
			names[d.Name] = true
		}
	}
}
