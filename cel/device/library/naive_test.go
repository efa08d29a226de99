// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package library_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// permutations calls f with each order of the numbers below n, until f returns true.
func permutations(n int, f func([]int) bool) bool {
	order := make([]int, 0, n)
	var next func() bool
	next = func() bool {
		if len(order) == n {
			return f(order)
		}
		for i := range n {
			if slices.Contains(order, i) {
				continue
			}
			order = append(order, i)
			if next() {
				return true
			}
			order = order[:len(order)-1]
		}
		return false
	}
	return next()
}

// TestSameAsNaive compares the functions that take a relation with simple implementations that follow the package comment
// literally.
func TestSameAsNaive(t *testing.T) {
	env := environment(t)
	outcomes := map[string][2]int{}
	cases.Check(t, func(rt *rapid.T) {
		n, dense := rapid.IntRange(0, 7).Draw(rt, "n"), rapid.IntRange(1, 9).Draw(rt, "dense")
		matrix := make([][]bool, n)
		numbers := make([]any, n)
		for a := range matrix {
			matrix[a], numbers[a] = make([]bool, n), a
			for b := range matrix[a] {
				matrix[a][b] = rapid.IntRange(0, 9).Draw(rt, "joined") < dense && rapid.Bool().Draw(rt, "this way")
			}
		}
		joined := func(a, b int) bool { return matrix[a][b] || matrix[b][a] }
		row := func(order []int) bool {
			for i := range order[:max(0, n-1)] {
				if !joined(order[i], order[i+1]) {
					return false
				}
			}
			return true
		}
		reached := map[int]bool{}
		var visit func(int)
		visit = func(a int) {
			reached[a] = true
			for b := range n {
				if a != b && joined(a, b) && !reached[b] {
					visit(b)
				}
			}
		}
		if n > 0 {
			visit(0)
		}
		clique := true
		for a := range n {
			for b := range n {
				clique = clique && (a == b || joined(a, b))
			}
		}
		for function, want := range map[string]bool{
			"connected": len(reached) == n,
			"clique":    clique,
			"path":      permutations(n, row),
			"ring": permutations(n, func(order []int) bool {
				return row(order) && (n < 2 || joined(order[n-1], order[0]))
			}),
		} {
			value, err := evaluated(t, env, "list."+function+"(a, b, other[a][b])", map[string]any{"list": numbers, "other": matrix})
			require.NoError(rt, err)
			require.Equal(rt, types.Bool(want), value, "%s of %v", function, matrix)
			count(outcomes, function, want)
		}
	})
	requireBoth(t, outcomes)
}

func count(outcomes map[string][2]int, function string, is bool) {
	of := outcomes[function]
	if is {
		of[1]++
	} else {
		of[0]++
	}
	outcomes[function] = of
}

// requireBoth requires that each function was true for some inputs and false for others, unless the run is too short.
func requireBoth(t *testing.T, outcomes map[string][2]int) {
	t.Helper()
	t.Logf("false and true: %v", outcomes)
	for function, of := range outcomes {
		require.Positive(t, min(of[0], of[1]), function)
	}
}

// fits is a simple implementation of box. It tries all orders of the sides and, on a circle, all start positions of an arc.
func fits(at [][]int64, sides, circles []int64) bool {
	return permutations(len(sides), func(order []int) bool {
		for i, numbers := range at {
			if len(numbers) == 0 || narrowest(numbers, circles[i]) != sides[order[i]] {
				return false
			}
		}
		return true
	})
}

func narrowest(numbers []int64, circle int64) int64 {
	if circle == 0 {
		return slices.Max(numbers) - slices.Min(numbers) + 1
	}
	best := int64(math.MaxInt64)
	for begin := range circle {
		farthest := int64(0)
		for _, n := range numbers {
			farthest = max(farthest, ((n-begin)%circle+circle)%circle)
		}
		best = min(best, farthest+1)
	}
	return best
}

func TestBoxAsNaive(t *testing.T) {
	env := environment(t)
	outcomes := map[string][2]int{}
	cases.Check(t, func(rt *rapid.T) {
		dimensions, n := rapid.IntRange(1, 3).Draw(rt, "dimensions"), rapid.IntRange(0, 4).Draw(rt, "n")
		var sides, circles []int64
		at := make([][]int64, dimensions)
		places := make([][]int64, n)
		for i := range dimensions {
			sides = append(sides, rapid.Int64Range(1, 3).Draw(rt, "side"))
			circles = append(circles, rapid.Int64Range(0, 4).Draw(rt, "circle"))
			for element := range n {
				number := rapid.Int64Range(-2, 4).Draw(rt, "coordinate")
				at[i] = append(at[i], number)
				places[element] = append(places[element], number)
			}
		}
		want := n > 0 && fits(at, sides, circles)
		value, err := evaluated(t, env, "list.box(d, d, other[0], other[1])", map[string]any{"list": places, "other": [][]int64{sides, circles}})
		require.NoError(rt, err)
		require.Equal(rt, types.Bool(want), value, "%v in %v, around %v", places, sides, circles)
		count(outcomes, "box", want)
	})
	requireBoth(t, outcomes)
}

// TestBoxDoesNotOverflow uses coordinates that are as far apart as int64 allows.
func TestBoxDoesNotOverflow(t *testing.T) {
	env := environment(t)
	far := map[string]any{"list": []int64{math.MinInt64, math.MaxInt64}, "other": []any{}}
	for text, want := range map[string]types.Bool{
		"list.box(d, [d], [0])":                                         false,
		"list.box(d, [d], [-1])":                                        false,
		"list.box(d, [d], [9223372036854775807])":                       false,
		"list.box(d, [d], [2], [2])":                                    true,
		"list.box(d, [d], [2], [9223372036854775807])":                  true,
		"list.filter(d, d < 0).box(d, [d], [1])":                        true,
		"list.filter(d, d < 0).box(d, [d], [1], [3])":                   true,
		"list.filter(d, d == 0).box(d, [d], [0])":                       false,
		"list.box(d, [d / 2], [9223372036854775807])":                   false,
		"list.box(d, [d / 2 - (d > 0 ? 1 : 0)], [9223372036854775807])": true,
		"list.box(d, [], [])":                                           true,
	} {
		value, err := evaluated(t, env, text, far)
		require.NoError(t, err, text)
		require.Equal(t, want, value, text)
	}
}

// paired is a simple implementation. It tries every assignment of the longer list's elements to elements of the shorter list.
func paired(longer, shorter int, joined func(a, b int) bool) bool {
	if shorter == 0 || longer%shorter != 0 {
		return longer == 0
	}
	taken := make([]int, shorter)
	var next func(a int) bool
	next = func(a int) bool {
		if a == longer {
			return true
		}
		for b := range shorter {
			if joined(a, b) && taken[b] < longer/shorter {
				taken[b]++
				if next(a + 1) {
					return true
				}
				taken[b]--
			}
		}
		return false
	}
	return next(0)
}

func TestPairedAsNaive(t *testing.T) {
	env := environment(t)
	outcomes := map[string][2]int{}
	cases.Check(t, func(rt *rapid.T) {
		short, times := rapid.IntRange(0, 4).Draw(rt, "short"), rapid.IntRange(1, 3).Draw(rt, "times")
		long := short*times + rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(rt, "more")
		swapped := rapid.Bool().Draw(rt, "swapped")
		dense := rapid.IntRange(3, 9).Draw(rt, "dense")
		matrix := make([][]bool, long)
		for a := range matrix {
			matrix[a] = make([]bool, short)
			for b := range short {
				matrix[a][b] = rapid.IntRange(0, 9).Draw(rt, "joined") < dense
			}
		}
		want := paired(long, short, func(a, b int) bool { return matrix[a][b] })
		text := "list[0].paired(list[1], a, b, other[a][b])"
		if swapped {
			text = "list[1].paired(list[0], a, b, other[b][a])"
		}
		value, err := evaluated(t, env, text, map[string]any{"list": [][]int{numbers(long), numbers(short)}, "other": matrix})
		require.NoError(rt, err)
		require.Equal(rt, types.Bool(want), value, "%d and %d: %v", long, short, matrix)
		count(outcomes, "paired", want)
	})
	requireBoth(t, outcomes)
}

func numbers(n int) []int {
	result := make([]int, n)
	for i := range result {
		result[i] = i
	}
	return result
}

// divided tries all ways to divide the keys into segments. It forms a segment from the first remaining key and equal keys. The
// segment has the full size, or, at most once, the remaining size.
func divided(keys []ref.Val, size int, short bool) bool {
	if len(keys) == 0 {
		return true
	}
	for _, length := range []int{size, (len(keys)-1)%size + 1} {
		if length < size && short {
			continue
		}
		// Elements with the same key are interchangeable.
		var rest []ref.Val
		taken := 0
		for _, key := range keys {
			if taken < length && keys[0].Equal(key) == types.True {
				taken++
			} else {
				rest = append(rest, key)
			}
		}
		if taken == length && divided(rest, size, short || length < size) {
			return true
		}
	}
	return false
}

func TestSegmentsAsNaive(t *testing.T) {
	env := environment(t)
	outcomes := map[string][2]int{}
	kinds := [][]any{
		{1, 2, 3}, {"a", "b", ""}, {1, 1.0, uint64(1), 2}, {true, false, 1}, {-1, -1.0, 0.5}, {[]any{1, "a"}, []any{1.0, "a"}, []any{"a", 1}},
		{[]any{[]any{1}, 2}, []any{1, 2}, []any{[]any{1, 2}}}, {uint64(math.MaxUint64), -1, 1e300, math.Inf(1)}, {[]byte("a"), "a"}, {"ab", []any{"a", "b"}},
	}
	cases.Check(t, func(rt *rapid.T) {
		n, size := rapid.IntRange(0, 8).Draw(rt, "n"), rapid.IntRange(1, 5).Draw(rt, "size")
		of := rapid.SampledFrom(kinds).Draw(rt, "kind")
		list := make([]any, n)
		keys := make([]ref.Val, n)
		for i := range n {
			list[i] = rapid.SampledFrom(of).Draw(rt, "key")
			keys[i] = types.DefaultTypeAdapter.NativeToValue(list[i])
		}
		want := divided(keys, size, false)
		value, err := evaluated(t, env, "list.segments(other[0], d, d)", map[string]any{"list": list, "other": []int{size}})
		require.NoError(rt, err)
		require.Equal(rt, types.Bool(want), value, "%v in segments of %d", list, size)
		count(outcomes, "segments", want)
	})
	requireBoth(t, outcomes)
}

// TestSegmentsOfNoNumber checks that NaN is equal to no key, also in lists.
func TestSegmentsOfNoNumber(t *testing.T) {
	env := environment(t)
	input := map[string]any{"list": []float64{math.NaN(), math.NaN()}}
	for text, want := range map[string]types.Bool{
		"list.segments(1, d, d)": true, "list.segments(2, d, d)": false, "list.segments(2, d, [d, 1.0])": false, "list.segments(2, d, d == d)": true,
	} {
		value, err := evaluated(t, env, text, input)
		require.NoError(t, err, text)
		require.Equal(t, want, value, text)
	}
}
