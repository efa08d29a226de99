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

// of returns a set of positions below n.
func of(n int, positions ...int) bitset.Set {
	set := bitset.New(n)
	for _, i := range positions {
		set.Add(i)
	}
	return set
}

func TestWords(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 63: 1, 64: 1, 65: 2, 128: 2, 129: 3} {
		require.Equal(t, want, bitset.Words(n), "%d positions", n)
		require.Len(t, bitset.New(n), want)
	}
}

func TestLoopMayEndEarly(t *testing.T) {
	var seen []int
	for i := range of(130, 1, 2, 64, 129).All() {
		seen = append(seen, i)
		if i == 64 {
			break
		}
	}
	require.Equal(t, []int{1, 2, 64}, seen)
	require.Empty(t, slices.Collect(bitset.New(0).All()))
	require.Equal(t, -1, bitset.New(0).Next(0))
	require.Equal(t, -1, of(64, 63).Next(64), "behind the last word")
}

// TestLoopOverSetThatChanges checks that a loop over All does not see changes in the word that it has reached.
func TestLoopOverSetThatChanges(t *testing.T) {
	set := of(192, 0, 1, 64, 65)
	var seen []int
	for i := range set.All() {
		seen = append(seen, i)
		if i == 0 {
			set.Remove(1)
			set.Add(2)
			set.Remove(64)
			set.Add(128)
		}
	}
	require.Equal(t, []int{0, 1, 65, 128}, seen)
	require.Equal(t, of(192, 0, 2, 65, 128), set)
}

func TestLoopAllocatesNothing(t *testing.T) {
	set, sum := of(130, 1, 2, 64, 129), 0
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for i := range set.All() {
			sum += i
		}
	}))
}

// TestListsOfSets checks that sets of one List don't overlap.
func TestListsOfSets(t *testing.T) {
	list := bitset.NewList(3, 65)
	require.Len(t, append(list.At(1), 1), 3)
	list.At(0).Add(64)
	require.Len(t, list.At(2), 2)
	require.True(t, list.At(2).IsEmpty())

	first, rest := list.Cut(1)
	require.Equal(t, of(65, 64), first.At(0))
	require.Panics(t, func() { first.At(1) })
	rest.At(1).Add(3)
	require.Equal(t, of(65, 3), list.At(2))
}

// TestSetIsLikeMap compares a set with a map of its positions.
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
