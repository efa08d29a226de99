// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
)

// A set answers like a map that has its positions.
func TestSetIsLikeMap(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 5, 63, 64, 65, 128, 130}).Draw(t, "n")
		draw := func(label string) (bitset.Set, map[int]bool) {
			set, has := bitset.New(n), map[int]bool{}
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 20).Draw(t, label) {
				set.Add(i)
				has[i] = true
			}
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 5).Draw(t, "not in "+label) {
				set.Remove(i)
				delete(has, i)
			}
			return set, has
		}
		a, inA := draw("a")
		b, inB := draw("b")
		var ascending, both []int
		for i := range n {
			require.Equal(t, inA[i], a.Has(i))
			if inA[i] {
				ascending = append(ascending, i)
			}
			if inA[i] && inB[i] {
				both = append(both, i)
			}
		}
		common := len(both)
		require.Equal(t, ascending, slices.Collect(a.All()))
		require.Equal(t, len(ascending), a.Count())
		require.Equal(t, len(ascending) == 0, a.IsEmpty())
		require.Equal(t, common, a.CountAnd(b))
		require.Equal(t, common > 0, a.Meets(b))
		require.Equal(t, common == len(ascending), a.IsWithin(b))
		only, ok := a.OnlyAnd(b)
		require.Equal(t, common < 2, ok)
		if ok {
			require.Equal(t, append(both, -1)[0], only)
		}

		from := rapid.IntRange(0, n+70).Draw(t, "from")
		want := -1
		if i := slices.IndexFunc(ascending, func(i int) bool { return i >= from }); i >= 0 {
			want = ascending[i]
		}
		require.Equal(t, want, a.Next(from))

		kept, dropped, joined := slices.Clone(a), slices.Clone(a), slices.Clone(a)
		require.Equal(t, common < len(ascending), kept.Keep(b))
		require.Equal(t, common > 0, dropped.Drop(b))
		joined.Join(b)
		for i := range n {
			require.Equal(t, inA[i] && inB[i], kept.Has(i))
			require.Equal(t, inA[i] && !inB[i], dropped.Has(i))
			require.Equal(t, inA[i] || inB[i], joined.Has(i))
		}
		kept.SetTo(a)
		require.Equal(t, a, kept)
		kept.Clear()
		require.True(t, kept.IsEmpty())
	})
}
