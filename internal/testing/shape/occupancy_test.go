// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOccupancies checks that the occupancies are what their names say, by the searches
// written by hand.
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

// lowestOf is what an exhaustive search looks at first.
func lowestOf(free Set, count int) Set {
	var set Set
	for i := range free.All() {
		if set.Len() < count {
			set |= bit(i)
		}
	}
	return set
}

func TestShuffledIsReproducible(t *testing.T) {
	for _, n := range []int{8, 12, 16, 32, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			set := shuffled(n, n/2)
			require.Equal(t, set, shuffled(n, n/2))
			require.Equal(t, n/2, set.Len())
			require.Zero(t, set&^first(n))
		})
	}
	// Pinned, for the figures of benchmarks to stay comparable.
	require.Equal(t, Set(0x2e), shuffled(8, 4))
}
