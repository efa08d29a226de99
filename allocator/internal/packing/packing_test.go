// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// amounts is a counter with an amount left. Each device consumes some amount of it.
type amounts struct {
	of   []int
	left int
}

func (a *amounts) sum(set []int) int {
	sum := 0
	for _, position := range slices.Compact(slices.Sorted(slices.Values(set))) {
		sum += a.of[position]
	}
	return sum
}

func (a *amounts) Take(set []int) bool {
	if a.sum(set) > a.left {
		return false
	}
	a.left -= a.sum(set)
	return true
}

func (a *amounts) GiveBack(set []int) { a.left += a.sum(set) }

// mostOf returns the greatest number of sets that can be taken together. It tries each subset of the sets.
func mostOf(sets [][]int, reserve *amounts) int {
	most := 0
	for chosen := range 1 << len(sets) {
		taken, count, left, fine := map[int]bool{}, 0, 0, true
		if reserve != nil {
			left = reserve.left
		}
		for i, set := range sets {
			if chosen>>i&1 == 0 {
				continue
			}
			count++
			for _, position := range slices.Compact(slices.Sorted(slices.Values(set))) {
				fine = fine && !taken[position]
				taken[position] = true
				if reserve != nil {
					left -= reserve.of[position]
				}
			}
			fine = fine && left >= 0 && len(set) > 0
		}
		if fine {
			most = max(most, count)
		}
	}
	return most
}

func requireDisjoint(t require.TestingT, sets [][]int, chosen []int) {
	taken := map[int]bool{}
	for _, i := range chosen {
		for _, position := range slices.Compact(slices.Sorted(slices.Values(sets[i]))) {
			require.False(t, taken[position], "device %d is in two sets of %v", position, chosen)
			taken[position] = true
		}
	}
}

// enough is the number of cases after which all code has been covered. It counts only cases where first fit is not optimal.
const enough = 30

func TestMostSameAsTryingAll(t *testing.T) {
	beyond := 0
	// Continue until there are enough cases where first fit is not optimal, even if fewer cases are requested.
	cases.Until(t, 50, func() bool { return beyond >= enough }, func(t *rapid.T) { beyond += trySets(t) })
}

// trySets draws sets and checks Most. It returns 1 if first fit was not optimal.
func trySets(t *rapid.T) (beyond int) {
	devices := rapid.IntRange(1, 12).Draw(t, "devices")
	sets := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, devices-1), 0, 4), 0, 11).Draw(t, "sets")
	var reservations Reservations
	var counters *amounts
	if rapid.Bool().Draw(t, "with counters") {
		counters = &amounts{of: rapid.SliceOfN(rapid.IntRange(0, 3), devices, devices).Draw(t, "amounts"), left: rapid.IntRange(0, 12).Draw(t, "amount")}
		reservations = counters
	}
	want := mostOf(sets, counters)
	before := 0
	if counters != nil {
		before = counters.left
	}
	chosen, isMost := Most(sets, devices, reservations, &Work{Left: 1 << 30})
	require.True(t, isMost)
	require.Len(t, chosen, want)
	requireDisjoint(t, sets, chosen)
	if counters != nil {
		require.Equal(t, before, counters.left, "all is given back")
	}
	first, _ := Most(sets, devices, reservations, &Work{})
	requireDisjoint(t, sets, first)
	require.LessOrEqual(t, len(first), want)
	if len(first) < want {
		beyond++
	}
	// isMost must be correct for any limit on work.
	some := Work{Left: rapid.Int64Range(0, 300).Draw(t, "work")}
	partial, isMost := Most(sets, devices, reservations, &some)
	requireDisjoint(t, sets, partial)
	require.GreaterOrEqual(t, len(partial), len(first))
	require.GreaterOrEqual(t, some.Left, int64(0))
	if isMost {
		require.Len(t, partial, want)
	}
	return beyond
}

// The sets are the pairs of neighbors on a path. First fit takes the pair in the middle first, which is not optimal.
func TestMost(t *testing.T) {
	path := [][]int{{1, 2}, {0, 1}, {2, 3}}
	chosen, isMost := Most(path, 4, nil, &Work{Left: 1000})
	require.Equal(t, []int{1, 2}, chosen)
	require.True(t, isMost)
	chosen, isMost = Most(path, 4, nil, &Work{})
	require.Equal(t, []int{0}, chosen)
	require.False(t, isMost)
	chosen, isMost = Most(nil, 4, nil, &Work{})
	require.Empty(t, chosen)
	require.True(t, isMost)
}

// There are many sets of 8 of 16 devices. The bound proves at once that at most two of them fit.
func TestMostOfManyIsCutAtOnce(t *testing.T) {
	var sets [][]int
	var choose func(from int, chosen []int)
	choose = func(from int, chosen []int) {
		if len(chosen) == 8 {
			sets = append(sets, slices.Clone(chosen))
			return
		}
		for i := from; i < 16; i++ {
			choose(i+1, append(chosen, i))
		}
	}
	choose(0, nil)
	require.Len(t, sets, 12870)
	work := Work{Left: 1 << 20}
	chosen, isMost := Most(sets, 16, nil, &work)
	require.Len(t, chosen, 2)
	require.True(t, isMost)
	require.Less(t, (1<<20)-work.Left, int64(700_000))
}
