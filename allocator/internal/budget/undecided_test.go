// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// subsets returns all sets of count numbers below free, in lexicographic order.
func subsets(free, count int) [][]int {
	if count == 0 {
		return [][]int{nil}
	}
	var result [][]int
	for first := range free {
		for _, rest := range subsets(free-first-1, count-1) {
			set := []int{first}
			for _, i := range rest {
				set = append(set, first+1+i)
			}
			result = append(result, set)
		}
	}
	return result
}

// choicesOf returns all choices. A choice has a subset for each request. The subset of the first request changes slowest.
func choicesOf(combinations []Combination) [][][]int {
	result := [][][]int{nil}
	for _, c := range combinations {
		var longer [][][]int
		for _, choice := range result {
			for _, set := range subsets(c.Free, c.Count) {
				longer = append(longer, append(slices.Clone(choice), set))
			}
		}
		result = longer
	}
	return result
}

// beginsWith reports whether a choice contains the devices that combinations have chosen.
func beginsWith(choice [][]int, combinations []Combination) bool {
	for i, c := range combinations {
		if !slices.Equal(choice[i][:len(c.Chosen)], c.Chosen) {
			return false
		}
	}
	return true
}

// For every position of a search, Undecided returns the same numbers as an enumeration.
func TestUndecidedEqualsEnumeration(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		combinations := make([]Combination, rapid.IntRange(0, 3).Draw(t, "requests"))
		for i := range combinations {
			combinations[i].Free = rapid.IntRange(0, 6).Draw(t, "free")
			combinations[i].Count = rapid.IntRange(0, min(3, combinations[i].Free)).Draw(t, "count")
		}
		all := choicesOf(combinations)
		// A position is the beginning of a choice. All requests before the last one of the position have all their devices.
		place := rapid.SampledFrom(all).Draw(t, "place")
		depth := rapid.IntRange(0, 9).Draw(t, "depth")
		for i := range combinations {
			n := min(depth, combinations[i].Count)
			combinations[i].Chosen = place[i][:n]
			depth -= n
		}
		first := slices.IndexFunc(all, func(choice [][]int) bool { return beginsWith(choice, combinations) })

		left, sets := Undecided(combinations)
		require.Equal(t, int64(len(all)), sets.Int64())
		require.Equal(t, int64(len(all)-first), left.Int64())
	})
}

// Undecided is correct for numbers that are too large for an enumeration.
func TestUndecidedOfMany(t *testing.T) {
	for name, test := range map[string]struct {
		combinations []Combination
		left, sets   string
	}{
		"nothing":              {nil, "1", "1"},
		"at the beginning":     {[]Combination{{Free: 64, Count: 16}}, "488526937079580", "488526937079580"},
		"at the first of many": {[]Combination{{Free: 64, Count: 16, Chosen: []int{0, 1, 2}}}, "488526937079580", "488526937079580"},
		// left is C(64,16) - C(63,15).
		"first device given back": {[]Combination{{Free: 64, Count: 16, Chosen: []int{1}}}, "366395202809685", "488526937079580"},
		"at the last": {
			[]Combination{{Free: 64, Count: 16, Chosen: []int{48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63}}}, "1", "488526937079580",
		},
		"several requests": {
			[]Combination{{Free: 128, Count: 32}, {Free: 128, Count: 32}},
			new(big.Int).Exp(binomial(128, 32), big.NewInt(2), nil).String(), new(big.Int).Exp(binomial(128, 32), big.NewInt(2), nil).String(),
		},
		"too few devices": {[]Combination{{Free: 4, Count: 2, Chosen: []int{1, 2}}, {Free: 1, Count: 2}}, "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			left, sets := Undecided(test.combinations)
			require.Equal(t, test.left, left.String())
			require.Equal(t, test.sets, sets.String())
		})
	}
}
