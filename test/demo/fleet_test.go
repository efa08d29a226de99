// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/story"
)

// The demo shows the number of sets only if nothing else explains the selection: all clusters have the same number of free
// devices, and the selected cluster is neither the first nor the last by name.
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
