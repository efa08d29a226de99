// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/story"
)

// All clusters have the same number of free devices, connected in one cluster only. That cluster is neither the first nor the
// last by name, so no tie-break selects it.
func TestClustersDifferInSetsOnly(t *testing.T) {
	ring := story.Ring()
	var connected []string
	for _, city := range cities {
		var free []string
		for _, device := range ring.Topology.Devices {
			if !slices.Contains(city.taken, device.Name) {
				free = append(free, device.Name)
			}
		}
		require.Len(t, free, 4, city.name)
		if ring.Holds(free) {
			connected = append(connected, city.name)
		}
	}
	require.True(t, slices.IsSorted(FleetClusters()))
	require.Equal(t, []string{cities[1].name}, connected)
}
