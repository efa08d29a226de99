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

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
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
func drawOf(t *rapid.T, set bitset.Set) bitset.Set {
	result := slices.Clone(set)
	for i := range set.All() {
		if rapid.Bool().Draw(t, "dropped") {
			result.Remove(i)
		}
	}
	return result
}

func TestOrderFindsExtremes(t *testing.T) {
	cases.CheckN(t, cases.Of(2000, 10_000), func(t *rapid.T) {
		o, numbers := drawOrder(t)
		require.True(t, slices.IsSorted(o.values))
		require.Len(t, slices.Compact(slices.Clone(o.values)), len(o.values))
		set := drawOf(t, o.ints)
		require.True(t, o.has(set))
		least, most := int64(math.MaxInt64), int64(math.MinInt64)
		for i := range set.All() {
			least, most = min(least, numbers[i]), max(most, numbers[i])
		}
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
	cases.CheckN(t, cases.Of(2000, 10_000), func(t *rapid.T) {
		o, numbers := drawOrder(t)
		limit := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		least, most := limit.Draw(t, "least"), limit.Draw(t, "most")
		set := drawOf(t, o.ints)
		want := slices.Clone(set)
		for i := range set.All() {
			if numbers[i] < least || numbers[i] > most {
				want.Remove(i)
			}
		}
		before := set.Count()
		removed := o.keepBetween(set, least, most)
		require.Equal(t, want, set)
		require.Equal(t, before != want.Count(), removed)
	})
}

func TestOrderOfNothing(t *testing.T) {
	o := newOrder([]entry{entryOf(types.String("text")), entryOf(types.NewErr("missing"))})
	require.False(t, o.isBounded())
	require.False(t, o.has(bitset.Set{1}))
	require.True(t, o.has(bitset.Set{0}))
	o = newOrder([]entry{entryOf(types.Int(math.MinInt64)), entryOf(types.Int(-1))})
	require.True(t, o.isBounded())
	o = newOrder([]entry{entryOf(types.Int(math.MinInt64)), entryOf(types.Int(0))})
	require.False(t, o.isBounded(), "the distance is one more than there is room for")
}

var results = []Outcome{True, False, Error}

// celAnd is what CEL says of two single results.
func celAnd(a, b Outcome) Outcome {
	switch {
	case a == False || b == False:
		return False
	case a == Error || b == Error:
		return Error
	default:
		return True
	}
}

func celNot(a Outcome) Outcome {
	switch a {
	case True:
		return False
	case False:
		return True
	default:
		return Error
	}
}

// eachPair calls f for all sets of results, and the function on single results
// applied to all of their elements.
func eachPair(f func(a, b Outcome, apply func(func(x, y Outcome) Outcome) Outcome)) {
	for a := True; a <= Open; a++ {
		for b := True; b <= Open; b++ {
			f(a, b, func(single func(x, y Outcome) Outcome) Outcome {
				var all Outcome
				for _, x := range results {
					for _, y := range results {
						if a.may(x) && b.may(y) {
							all |= single(x, y)
						}
					}
				}
				return all
			})
		}
	}
}

func TestLogicIsThatOfAllResults(t *testing.T) {
	eachPair(func(a, b Outcome, apply func(func(x, y Outcome) Outcome) Outcome) {
		require.Equal(t, apply(celAnd), a.and(b), "%s && %s", a, b)
		require.Equal(t, apply(func(x, y Outcome) Outcome { return celNot(celAnd(celNot(x), celNot(y))) }), a.or(b), "%s || %s", a, b)
		require.Equal(t, apply(func(x, _ Outcome) Outcome { return celNot(x) }), a.not(), "!%s", a)
		for c := True; c <= Open; c++ {
			var all Outcome
			for _, when := range results {
				switch {
				case !a.may(when):
				case when == True:
					all |= b
				case when == False:
					all |= c
				default:
					all |= Error
				}
			}
			require.Equal(t, all, a.choose(b, c), "%s ? %s : %s", a, b, c)
		}
	})
}

func TestOutcomeString(t *testing.T) {
	require.Equal(t, "true|false|error", Open.String())
	require.Equal(t, "false", False.String())
	require.Equal(t, "", Outcome(0).String())
}
