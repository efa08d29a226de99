// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOccupancies checks, with the hand-written searches, that each occupancy has the property that its name states.
func TestOccupancies(t *testing.T) {
	for _, s := range Scenarios() {
		n := len(s.Topology.Devices)
		for _, o := range s.Occupancies {
			t.Run(s.Name+"/"+o.Name, func(t *testing.T) {
				require.Zero(t, o.InUse&^s.All(), "devices that do not exist")
				free := s.All() &^ o.InUse
				set, _ := s.HandWritten(free)
				switch o.Name {
				case Empty:
					require.Equal(t, n, free.Len())
					require.NotZero(t, set)
				case Free70:
					require.InDelta(t, 0.7*float64(n), free.Len(), 0.5)
				case HalfFree:
					require.Equal(t, n/2, free.Len())
				case Adversarial:
					require.NotZero(t, set)
					require.NotEqual(t, lowestOf(free, s.Wanted()), set, "found at once")
				case Unsatisfiable:
					require.Zero(t, set)
					require.True(t, s.Enough(free))
				default:
					t.Fatalf("unknown occupancy %q", o.Name)
				}
			})
		}
	}
}

// lowestOf returns the count lowest free devices, which are the first set that an exhaustive search visits.
func lowestOf(free Set, count int) Set {
	var set Set
	for i := range free.All() {
		if set.Len() < count {
			set |= bit(i)
		}
	}
	return set
}

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
