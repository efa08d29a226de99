// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// line has n devices with the attribute y counting from zero, s alternating, v a version
// and l a list.
func line(n int) []*device.Device {
	result := make([]*device.Device, n)
	for i := range result {
		result[i] = device.New("d", sourceOf(i))
	}
	return result
}

// sourceOf is the device at a place in the line.
func sourceOf(i int) *resourceapi.Device {
	return &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"y": {IntValue: ptr.To(int64(i))},
		"s": {StringValue: ptr.To(string(rune('a' + i%2)))},
		"l": {IntValues: []int64{int64(i), int64(i + 5)}},
		"v": {VersionValue: ptr.To(fmt.Sprintf("1.%d.0", i/2))},
	}}
}

func of(n int, positions ...int) bitset.Set {
	result := bitset.New(n)
	for _, i := range positions {
		result.Add(i)
	}
	return result
}

// Sets of three of six devices, of which 0 and 5 are chosen: what the bounds know of
// the completions.
func TestBoundsOfConstructs(t *testing.T) {
	e := environment(t)
	for expression, want := range constructs {
		t.Run(expression, func(t *testing.T) {
			compiled, err := e.Compile(t.Context(), expression)
			require.NoError(t, err)
			tables := bound.Analyze(compiled, 3).Tabulate(line(6)).NewBounds(t.Context(), nil)
			p := bound.Partial{Chosen: of(6, 0, 5), Domain: of(6, 1, 2, 3, 4), Left: 1}
			require.Equal(t, want.String(), tables.Bound(p).String())
			if want == bound.False {
				require.True(t, tables.Infeasible(p, bound.Thorough))
			} else if want.String() != "true|false" {
				require.False(t, tables.Infeasible(p, bound.Thorough))
			}
		})
	}
}

// A candidate that is in no satisfactory completion is removed.
func TestInfeasibleRemovesCandidates(t *testing.T) {
	compiled, err := environment(t).Compile(t.Context(), "devices.map(d, d.attributes['d'].y).max() - devices.map(d, d.attributes['d'].y).min() == 2")
	require.NoError(t, err)
	tables := bound.Analyze(compiled, 3).Tabulate(line(70)).NewBounds(t.Context(), nil)
	p := bound.Partial{Chosen: of(70, 65), Domain: of(70, 0, 1, 63, 64, 66, 69), Left: 2}
	require.False(t, tables.Infeasible(p, bound.Thorough))
	require.Equal(t, of(70, 63, 64, 66), p.Domain)
	require.EqualValues(t, 70, len(line(70)))
	require.LessOrEqual(t, tables.Evaluations(), int64(2*70))

	p = bound.Partial{Chosen: of(70, 69), Domain: of(70, 0, 1, 63, 64, 66), Left: 2}
	require.True(t, tables.Infeasible(p, bound.Thorough))
}

func TestUnderstood(t *testing.T) {
	e := environment(t)
	for expression, want := range map[string]bool{
		"devices.size() == 3":                         true,
		"devices.map(d, d.attributes['d'].y)[0] == 1": false,
		"devices.map(d, d.attributes['d'].y)[0] == 1 && devices.all(d, d.attributes['d'].y == 1)": true,
	} {
		compiled, err := e.Compile(t.Context(), expression)
		require.NoError(t, err)
		require.Equal(t, want, bound.Analyze(compiled, 3).Understood(), expression)
	}
}
