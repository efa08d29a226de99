// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"slices"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawOrder has some numbers, among them those of the extremes, and devices without one.
func drawOrder(t *rapid.T) (o order, numbers []int64) {
	number := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64 - 1, math.MaxInt64}))
	n := rapid.IntRange(1, 70).Draw(t, "devices")
	entries := make([]entry, n)
	numbers = make([]int64, n)
	for i := range entries {
		switch rapid.IntRange(0, 19).Draw(t, "kind") {
		case 0:
			entries[i] = entryOf(types.String("text"))
		case 1:
			entries[i] = entryOf(types.NewErr("missing"))
		case 2:
			entries[i] = entryOf(types.Double(1))
		default:
			numbers[i] = number.Draw(t, "number")
			entries[i] = entryOf(types.Int(numbers[i]))
		}
	}
	return newOrder(entries), numbers
}

// drawOf is a part of a set.
func drawOf(t *rapid.T, set Bits) Bits {
	result := slices.Clone(set)
	set.each(func(i int) bool {
		if rapid.Bool().Draw(t, "dropped") {
			result.Remove(i)
		}
		return true
	})
	return result
}

func TestOrderFindsExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, numbers := drawOrder(t)
		require.True(t, slices.IsSorted(o.values))
		require.Len(t, slices.Compact(slices.Clone(o.values)), len(o.values))
		set := drawOf(t, o.ints)
		require.True(t, o.has(set))
		least, most := int64(math.MaxInt64), int64(math.MinInt64)
		set.each(func(i int) bool {
			least, most = min(least, numbers[i]), max(most, numbers[i])
			return true
		})
		if set.IsEmpty() {
			return
		}
		require.Equal(t, least, o.values[o.least(set)])
		require.Equal(t, most, o.values[o.most(set)])
		for place, value := range o.values {
			require.Equal(t, most > value, o.isAbove(set, place))
		}
	})
}

func TestKeepBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, numbers := drawOrder(t)
		limit := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		least, most := limit.Draw(t, "least"), limit.Draw(t, "most")
		set := drawOf(t, o.ints)
		want := slices.Clone(set)
		set.each(func(i int) bool {
			if numbers[i] < least || numbers[i] > most {
				want.Remove(i)
			}
			return true
		})
		before := set.Count()
		removed := o.keepBetween(set, least, most)
		require.Equal(t, want, set)
		require.Equal(t, before != want.Count(), removed)
	})
}

func TestOrderOfNothing(t *testing.T) {
	o := newOrder([]entry{entryOf(types.String("text")), entryOf(types.NewErr("missing"))})
	require.False(t, o.isBounded())
	require.False(t, o.has(Bits{1}))
	require.True(t, o.has(Bits{0}))
	o = newOrder([]entry{entryOf(types.Int(math.MinInt64)), entryOf(types.Int(-1))})
	require.True(t, o.isBounded())
	o = newOrder([]entry{entryOf(types.Int(math.MinInt64)), entryOf(types.Int(0))})
	require.False(t, o.isBounded(), "the distance is one more than there is room for")
}

func TestSetsOfPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 5, 63, 64, 65, 128, 130}).Draw(t, "n")
		draw := func(label string) (Bits, map[int]bool) {
			bits, has := NewBits(n), map[int]bool{}
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 20).Draw(t, label) {
				bits.Add(i)
				has[i] = true
			}
			return bits, has
		}
		a, inA := draw("a")
		b, inB := draw("b")
		var ascending []int
		common := 0
		for i := range n {
			require.Equal(t, inA[i], a.Has(i))
			if inA[i] {
				ascending = append(ascending, i)
			}
			if inA[i] && inB[i] {
				common++
			}
		}
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
		kept.Set(a)
		require.Equal(t, a, kept)
		kept.Clear()
		require.True(t, kept.IsEmpty())
	})
}

// Sets that are made together don't reach into each other.
func TestListsOfSets(t *testing.T) {
	all := NewBitsList(3, 65)
	all[1] = append(all[1], 1)
	all[0].Add(64)
	require.True(t, all[2].IsEmpty())
	require.Len(t, all[2], 2)
}
