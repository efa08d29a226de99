// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package counter

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

func TestCompatibilityWith(t *testing.T) {
	var nothing compatibility
	grouped := compatibility{devices: true, groups: sets.New("g", "h")}
	ungrouped := compatibility{devices: true, ungrouped: true, groups: sets.New[string]()}
	for name, test := range map[string]struct {
		known  compatibility
		groups []string
		want   compatibility
		ok     bool
	}{
		"first":                {nothing, []string{"h", "g"}, grouped, true},
		"first without":        {nothing, nil, ungrouped, true},
		"narrows":              {grouped, []string{"g", "x"}, compatibility{devices: true, groups: sets.New("g")}, true},
		"nothing in common":    {grouped, []string{"x"}, compatibility{devices: true, groups: sets.New[string]()}, false},
		"without, others with": {grouped, nil, grouped, false},
		"with, others without": {ungrouped, []string{"g"}, ungrouped, false},
		"both without":         {ungrouped, nil, ungrouped, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := test.known.with(test.groups)
			require.Equal(t, test.ok, ok)
			require.Equal(t, test.want, got)
		})
	}
	require.Equal(t, sets.New("g", "h"), grouped.groups, "it is never modified")
}

func TestCompatibilitiesUndo(t *testing.T) {
	consuming := func(gpu []string, other ...string) *resourceapi.Device {
		d := &resourceapi.Device{ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "gpu", CompatibilityGroups: gpu}}}
		if len(other) > 0 {
			d.ConsumesCounters = append(d.ConsumesCounters, resourceapi.DeviceCounterConsumption{CounterSet: "other", CompatibilityGroups: other})
		}
		return d
	}
	devices := []*resourceapi.Device{
		consuming([]string{"g", "h"}), consuming([]string{"g", "h"}, "g"), consuming([]string{"g"}, "h"), consuming([]string{"h"}),
	}
	c := NewGroups(&inventory.Pool{}, nil)
	take := func(device int, want bool) {
		t.Helper()
		require.Equal(t, want, c.Take(devices[device]))
	}
	take(0, true)
	take(1, true)
	take(2, false) // after it was added to the first counter set
	require.Equal(t, sets.New("g", "h"), c.current["gpu"].groups)
	take(3, true)
	require.Equal(t, sets.New("h"), c.current["gpu"].groups)
	take(2, false)
	c.GiveBack()
	require.Equal(t, sets.New("g", "h"), c.current["gpu"].groups)
	c.GiveBack()
	require.Equal(t, compatibility{}, c.current["other"])
	take(2, true)
	require.Equal(t, sets.New("g"), c.current["gpu"].groups)
	c.GiveBack()
	c.GiveBack()
	require.Equal(t, compatibility{}, c.current["gpu"])
	require.Empty(t, c.before)
	take(2, true)
}
