// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVariants(t *testing.T) {
	const nodes = 1000
	for _, s := range Scenarios() {
		for _, o := range s.Occupancies {
			t.Run(s.Name+"/"+o.Name, func(t *testing.T) {
				all := s.Variants(o, nodes)
				require.Equal(t, all, s.Variants(o, nodes), "not reproducible")
				require.Equal(t, o.InUse, all[0])
				seen := make(map[Set]bool)
				for _, inUse := range all {
					require.False(t, seen[inUse], "twice: %b", inUse)
					seen[inUse] = true
					requireInTheMannerOf(t, s, o, inUse)
				}
				if len(s.Topology.Devices) > 16 {
					require.Len(t, all, nodes)
				}
			})
		}
	}
}

func requireInTheMannerOf(t *testing.T, s Scenario, o Occupancy, inUse Set) {
	t.Helper()
	free := s.All() &^ inUse
	require.Zero(t, inUse&^s.All())
	set, _ := s.HandWritten(free)
	switch o.Name {
	case Free70, HalfFree:
		require.Equal(t, o.InUse.Len(), inUse.Len())
		return
	case Adversarial:
		require.NotZero(t, set)
	case Unsatisfiable:
		require.Zero(t, set)
	}
	require.Zero(t, o.InUse&^inUse)
	require.True(t, s.Enough(free))
}

// Of few devices there are fewer occupancies than nodes; then all of them come.
func TestVariantsOfFewDevices(t *testing.T) {
	s := Scenarios()[0]
	require.Equal(t, "pairs-8-2", s.Name)
	for _, o := range s.Occupancies {
		count := len(s.Variants(o, 1000))
		switch o.Name {
		case Empty:
			require.Equal(t, 256-1-8, count, "all but those with fewer than two devices free")
		case Free70:
			require.Equal(t, 28, count, "2 of 8")
		case HalfFree:
			require.Equal(t, 70, count, "4 of 8")
		case Adversarial:
			require.Equal(t, 8, count, "any of the three devices that no answer has")
		case Unsatisfiable:
			require.Equal(t, 1+4+6, count, "up to two of four more")
		}
	}
	require.Len(t, s.Variants(s.Occupancies[0], 5), 5)
}
