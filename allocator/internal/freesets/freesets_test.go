// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package freesets

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
)

func setsOf(devices int, sets ...[]int) *Sets {
	result := &Sets{}
	for _, set := range sets {
		result.Add(set, devices)
	}
	return result
}

func TestLossIsInOrderOfShapes(t *testing.T) {
	large, small := setsOf(4, []int{0, 1, 2}), setsOf(4, []int{0, 1}, []int{1, 2}, []int{2, 3})
	r := New([]*Sets{large, small}, 4, bitset.New(4), nil)
	require.Equal(t, []int{1, 3}, []int{r.Before(0), r.Before(1)})
	r.Take(3)
	three := r.Lost()
	require.Equal(t, []int{0, 1}, []int{three.Of(0, 2), three.Of(1, 2)})
	r.GiveBack(3)
	require.Zero(t, r.Lost())
	r.Take(0)
	require.Greater(t, r.Lost(), three, "a large set weighs more than any number of small ones")
	r.Take(1)
	require.Equal(t, []int{1, 2}, []int{r.Lost().Of(0, 2), r.Lost().Of(1, 2)})
}

func TestThinned(t *testing.T) {
	all := &Sets{}
	for i := range 100 {
		all.Add([]int{i, i + 1}, 101)
	}
	require.Same(t, all, all.Thin(100))
	thinned := all.Thin(10)
	require.Equal(t, 10, thinned.Len())
	require.Equal(t, []int32{90, 91}, thinned.at(9))
	require.Less(t, thinned.Bytes(), all.Bytes())
	require.Equal(t, 34, all.Thin(34).Len(), "every third")
	require.Empty(t, (&Sets{}).Thin(10).ends)
}

func TestConflictsBreakSets(t *testing.T) {
	// Device 3 consumes as much of the counters as the devices 0 and 1 together.
	conflicts := func(position int) bitset.Set {
		excluded := bitset.New(4)
		switch position {
		case 0, 1:
			excluded.Add(3)
		case 3:
			excluded.Add(0)
			excluded.Add(1)
		}
		return excluded
	}
	r := New([]*Sets{setsOf(4, []int{0, 2}, []int{1, 2}, []int{3})}, 4, bitset.New(4), conflicts)
	r.Take(3)
	require.Equal(t, 3, r.Lost().Of(0, 1))
	r.GiveBack(3)
	r.Take(0)
	require.Equal(t, 2, r.Lost().Of(0, 1), "its own and that of 3")
}

// The loss that Take and GiveBack update equals a new count of the broken sets.
func TestTakeIsLikeCounting(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 70).Draw(rt, "devices")
		broken := bitset.New(n)
		var shapes []*Sets
		var sets [][][]int
		for range rapid.IntRange(1, MaxShapes).Draw(rt, "shapes") {
			var ofShape [][]int
			for range rapid.IntRange(0, 6).Draw(rt, "sets") {
				set := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 1, min(n, 4), rapid.ID[int]).Draw(rt, "set")
				ofShape = append(ofShape, set)
			}
			sets, shapes = append(sets, ofShape), append(shapes, setsOf(n, ofShape...))
		}
		for i := range n {
			if rapid.IntRange(0, 5).Draw(rt, "broken") == 0 {
				broken.Add(i)
			}
		}
		var taken []int
		count := func(shape int) int {
			lost := 0
			for _, set := range sets[shape] {
				isBroken := slices.ContainsFunc(set, broken.Has)
				if !isBroken && slices.ContainsFunc(set, func(i int) bool { return slices.Contains(taken, i) }) {
					lost++
				}
			}
			return lost
		}
		r := New(shapes, n, broken, nil)
		for range 20 {
			if len(taken) > 0 && rapid.Bool().Draw(rt, "give back") {
				r.GiveBack(taken[len(taken)-1])
				taken = taken[:len(taken)-1]
			} else if next := rapid.IntRange(0, n-1).Draw(rt, "take"); !slices.Contains(taken, next) {
				taken = append(taken, next)
				r.Take(next)
			}
			for shape := range shapes {
				require.Equal(rt, count(shape), r.Lost().Of(shape, len(shapes)))
			}
			// AtLeast never exceeds the actual loss by that many devices.
			domain := bitset.New(n)
			var free []int
			for i := range n {
				if !slices.Contains(taken, i) {
					domain.Add(i)
					free = append(free, i)
				}
			}
			more := min(2, len(free))
			least, before := r.AtLeast(more, domain), r.Lost()
			for _, i := range free[:more] {
				r.Take(i)
			}
			require.LessOrEqual(rt, least, r.Lost()-before)
			for _, i := range slices.Backward(free[:more]) {
				r.GiveBack(i)
			}
			require.Equal(rt, before, r.Lost())
		}
	})
}
