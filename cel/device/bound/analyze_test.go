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
