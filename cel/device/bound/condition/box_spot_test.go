// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
)

// TestSpotsAreSets compares both forms of a deviceSet (list and bits) with the bitset.Set that the deviceSet was made from.
func TestSpotsAreSets(t *testing.T) {
	listed, bits := 0, 0
	cases.CheckN(t, cases.Of(500, 5000), func(t *rapid.T) {
		size := rapid.SampledFrom([]int{7, 64, 300}).Draw(t, "size")
		draw := func(name string) bitset.Set {
			set := bitset.New(size)
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, size-1), 0, 20).Draw(t, name) {
				set.Add(i)
			}
			return set
		}
		in, other := draw("in"), draw("other")
		s := newSpot(in)
		if s.bits != nil {
			bits++
		} else {
			listed++
		}
		require.Equal(t, other.CountAnd(in), s.countIn(other))
		require.Equal(t, other.IsWithin(in), s.has(other, other.Count()))
		joined, want := bitset.New(size), bitset.New(size)
		s.joinTo(joined)
		want.Join(in)
		require.Equal(t, want, joined)
	})
	require.Positive(t, listed)
	require.Positive(t, bits)
}
