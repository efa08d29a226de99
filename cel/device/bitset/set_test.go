// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bitset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel/device/bitset"
)

// of is a set of positions below n.
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

// The positions at the ends of words.
func TestLoops(t *testing.T) {
	for _, positions := range [][]int{
		nil, {0}, {63}, {64}, {129}, {0, 1, 2}, {62, 63, 64, 65}, {0, 127, 128}, {0, 63, 64, 127, 128, 129},
	} {
		t.Run(fmt.Sprint(positions), func(t *testing.T) {
			set := of(130, positions...)
			require.Equal(t, positions, slices.Collect(set.All()))
			var next []int
			for i := set.Next(0); i >= 0; i = set.Next(i + 1) {
				next = append(next, i)
			}
			require.Equal(t, positions, next)
		})
	}
	require.Empty(t, slices.Collect(bitset.New(0).All()))
	require.Equal(t, -1, bitset.New(0).Next(0))
	require.Equal(t, -1, of(64, 63).Next(64), "behind the last word")
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
}

// A loop that changes the set sees the word that it is in as it was.
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

func TestOnlyAnd(t *testing.T) {
	for _, test := range []struct {
		name     string
		a, b     bitset.Set
		position int
		ok       bool
	}{
		{"none", of(130, 1, 70), of(130, 2, 71), -1, true},
		{"in the first word", of(130, 1, 2, 70), of(130, 2, 71), 2, true},
		{"in the last word", of(130, 1, 129), of(130, 2, 129), 129, true},
		{"two in a word", of(130, 1, 2), of(130, 1, 2, 70), 0, false},
		{"two in two words", of(130, 1, 70), of(130, 1, 70), 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			position, ok := test.a.OnlyAnd(test.b)
			require.Equal(t, test.position, position)
			require.Equal(t, test.ok, ok)
		})
	}
}

// Sets that are made together don't reach into each other.
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
