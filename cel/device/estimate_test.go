// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
)

func estimate(t *testing.T, expression string, devices int) uint64 {
	t.Helper()
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	compiled, err := environment.Compile(t.Context(), expression)
	require.NoError(t, err)
	cost, err := compiled.EstimateCost(devices)
	require.NoError(t, err)
	return cost
}

// TestEstimateGrowsWithTheSet pins how often a loop is gone through.
func TestEstimateGrowsWithTheSet(t *testing.T) {
	for expression, degree := range map[string]int{
		"devices.size() == 4":                                                                0,
		"devices.all(d, d.driver == 'a')":                                                    1,
		"devices.all(d, devices.exists(o, d == o))":                                          2,
		"devices.map(d, d.attributes['a'].x).max() == 3":                                     1,
		"devices.all(d, devices.all(e, devices.all(f, d != e || f.driver == 'a')))":          3,
		"cel.bind(all, devices, all.all(d, d.capacity['a'].b.isGreaterThan(quantity('1'))))": 1,
	} {
		few, many := estimate(t, expression, 100), estimate(t, expression, 200)
		require.InDelta(t, math.Pow(2, float64(degree)), float64(many)/float64(few), 0.25, expression)
		require.Positive(t, estimate(t, expression, 0))
		require.Equal(t, estimate(t, expression, 0), estimate(t, expression, -1))
	}
}

// TestEstimateKnowsTheLimitsOfTheAPI: no part of a device is without a size.
func TestEstimateKnowsTheLimitsOfTheAPI(t *testing.T) {
	for _, expression := range []string{
		"devices.all(d, d.driver.contains('a'))",
		"devices.all(d, d.attributes['a'].text.matches('[a-z]*'))",
		"devices.all(d, d.attributes.exists(domain, domain.contains('a')))",
		"devices.all(d, d.attributes['a'].exists(id, id.startsWith('a')))",
		"devices.all(d, d.attributes['a'].list.exists(x, x == 'a'))",
		"devices.all(d, d.attributes['a'].text.split(',').exists(x, x == 'a'))",
		"devices.all(d, d.capacity['a'].exists(id, d.capacity['a'][id].isInteger()))",
		"devices.map(d, d.attributes['a'].x).sum() == 3 && devices.map(d, d.driver).sort()[0] == 'a'",
		"devices.map(d, d.allowMultipleAllocations).isSorted()",
		"devices.filter(d, d.attributes['a']['x'] == 1).map(d, [d.driver]).flatten().distinct().size() == 1",
	} {
		require.Less(t, estimate(t, expression, 4), cel.DefaultCostLimit, expression)
	}
	require.Greater(t, estimate(t, "devices.all(a, devices.all(b, devices.all(c, devices.all(d, devices.all(e, a == b || c == d || e == a)))))", 32), cel.DefaultCostLimit)
}

// TestEstimateIsAnUpperBound evaluates the real expressions on the sets that they are
// written for.
func TestEstimateIsAnUpperBound(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, e := range corpus.Expressions() {
		compiled, err := environment.Compile(t.Context(), e.Text)
		require.NoError(t, err)
		for _, set := range setsOf(e) {
			bound, err := compiled.EstimateCost(len(set))
			require.NoError(t, err)
			budget := cel.NewBudget(math.MaxUint64)
			_, err = compiled.Satisfied(t.Context(), set, budget)
			require.NoError(t, err)
			require.LessOrEqual(t, budget.Spent(), bound, e.Name)
		}
	}
}

// setsOf returns the sets of devices that stand next to each other, for each request.
func setsOf(e corpus.Expression) [][]*device.Device {
	devices := map[string][]*device.Device{}
	for _, d := range e.Hardware.Devices() {
		devices[d.Driver] = append(devices[d.Driver], device.New(d.Driver, &d.Device))
	}
	var result [][]*device.Device
	for shift := range 9 {
		var set []*device.Device
		taken := map[string]int{}
		for _, r := range e.Requests {
			all := devices[r.Driver]
			for range r.Count {
				set = append(set, all[(shift+taken[r.Driver])%len(all)])
				taken[r.Driver]++
			}
		}
		result = append(result, set)
	}
	return result
}
