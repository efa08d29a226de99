// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// TestExpressionsMeanTheShape compares the two definitions of each shape, the
// expression and the check by the wiring, on sets that are answers, that nearly are
// and that are not.
func TestExpressionsMeanTheShape(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			expression, err := environment.Compile(t.Context(), s.Expression)
			require.NoError(t, err)
			values := valuesOf(t, s)
			cases.Check(t, func(t *rapid.T) {
				set := drawSet(t, s)
				var devices []*device.Device
				for i := range set.All() {
					devices = append(devices, values[i])
				}
				satisfied, err := expression.Satisfied(t.Context(), devices, cel.NewBudget(1<<40))
				if err != nil {
					t.Fatal(err)
				}
				if holds := s.Holds(s.Names(set)); satisfied != holds {
					t.Fatalf("%v: the expression says %v, the wiring %v", s.Names(set), satisfied, holds)
				}
			})
		})
	}
}

// valuesOf has the devices as expressions see them, in the order of the topology.
func valuesOf(t *testing.T, s Scenario) []*device.Device {
	slices, err := s.ResourceSlices("node-1")
	require.NoError(t, err)
	var values []*device.Device
	for _, slice := range slices {
		for i := range slice.Spec.Devices {
			require.Equal(t, s.Topology.Devices[len(values)].Name, slice.Spec.Devices[i].Name)
			values = append(values, device.New(slice.Spec.Driver, &slice.Spec.Devices[i]))
		}
	}
	return values
}

// drawSet draws as many devices as are wanted: an answer in which up to two devices
// are replaced by others of the same driver.
func drawSet(t *rapid.T, s Scenario) Set {
	set, _ := s.HandWritten(s.All() &^ Set(rapid.Uint64().Draw(t, "in use")&rapid.Uint64().Draw(t, "and")&rapid.Uint64().Draw(t, "and")))
	if set == 0 {
		set, _ = s.HandWritten(s.All())
	}
	for range rapid.IntRange(0, 2).Draw(t, "replaced") {
		r := rapid.SampledFrom(s.Requests).Draw(t, "request")
		ours := s.OfDriver(r.Driver)
		set &^= thinned(t, set&ours, 1)
		set |= thinned(t, ours&^set, 1)
	}
	return set
}
