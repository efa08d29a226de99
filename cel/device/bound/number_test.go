// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

func TestOverflowIsNoticed(t *testing.T) {
	interesting := []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, math.MaxInt64 - 1, math.MaxInt64, 1 << 32, -1 << 32}
	for name, f := range map[string]struct {
		checked func(x, y int64) (int64, bool)
		exact   func(z, x, y *big.Int) *big.Int
	}{
		"add":      {add, (*big.Int).Add},
		"subtract": {subtract, (*big.Int).Sub},
		"multiply": {multiply, (*big.Int).Mul},
	} {
		for _, x := range interesting {
			for _, y := range interesting {
				exact := f.exact(new(big.Int), big.NewInt(x), big.NewInt(y))
				value, ok := f.checked(x, y)
				require.Equal(t, exact.IsInt64(), ok, "%s(%d, %d)", name, x, y)
				if ok {
					require.Equal(t, exact.Int64(), value, "%s(%d, %d)", name, x, y)
				}
			}
		}
	}
}

func drawNumber(t *rapid.T, name string) number {
	least := rapid.Int64Range(-4, 4).Draw(t, name)
	return number{least: least, most: least + rapid.Int64Range(0, 3).Draw(t, name), fails: rapid.Bool().Draw(t, name)}
}

func TestArithmeticIncludesAllValues(t *testing.T) {
	cases.CheckN(t, cases.Of(2000, 10_000), func(t *rapid.T) {
		a, b := drawNumber(t, "a"), drawNumber(t, "b")
		for _, f := range []operation{addition, subtraction, multiplication} {
			result := combine(a, b, f)
			require.Equal(t, a.fails || b.fails, result.fails)
			least, most := int64(math.MaxInt64), int64(math.MinInt64)
			for x := a.least; x <= a.most; x++ {
				for y := b.least; y <= b.most; y++ {
					value, _ := f.apply(x, y)
					least, most = min(least, value), max(most, value)
				}
			}
			require.Equal(t, least, result.least)
			require.Equal(t, most, result.most)
		}
		relations := map[relation]func(x, y int64) bool{
			equal:       func(x, y int64) bool { return x == y },
			less:        func(x, y int64) bool { return x < y },
			lessOrEqual: func(x, y int64) bool { return x <= y },
		}
		for r, holds := range relations {
			var want Outcome
			if a.fails || b.fails {
				want = Error
			}
			for x := a.least; x <= a.most; x++ {
				for y := b.least; y <= b.most; y++ {
					want |= outcomeOf(holds(x, y))
				}
			}
			require.Equal(t, want, compare(r, a, b))
		}
		require.Equal(t, -a.most, a.negate().least)
		require.Equal(t, min(a.least, b.least), either(a, b).least)
		require.Equal(t, max(a.most, b.most), either(a, b).most)
	})
}

func TestFailureAndOpenNumbers(t *testing.T) {
	require.Equal(t, Error, compare(equal, never, exactly(1)))
	require.Equal(t, Error, compare(equal, exactly(1), never))
	require.Equal(t, Open, compare(less, openNumber, exactly(1)))
	require.True(t, combine(never, exactly(1), addition).isNever())
	require.True(t, combine(openNumber, exactly(1), addition).open)
	require.Equal(t, number{least: 1, most: 1, fails: true}, either(never, exactly(1)))
	require.Equal(t, number{least: 1, most: 1, fails: true}, either(exactly(1), never))
	require.True(t, either(openNumber, exactly(1)).open)
	require.True(t, number{least: math.MinInt64, most: 0}.negate().open)
	overflowing := combine(number{least: 0, most: math.MaxInt64}, exactly(1), addition)
	require.Equal(t, number{least: math.MinInt64, most: math.MaxInt64, fails: true}, overflowing)
}

// Limits say of the numbers of devices what the comparison does.
func TestLimits(t *testing.T) {
	values := []int64{math.MinInt64, -1, 0, 1, 2, 3, 4, math.MaxInt64}
	numbers := []int64{0, 1, 2, 3, 4}
	for _, r := range []relation{equal, less, lessOrEqual} {
		for _, value := range values {
			for _, flipped := range []bool{false, true} {
				l := limitsOf(r, value, flipped)
				opposite, hasOpposite := l.opposite()
				holds := func(x int64) Outcome {
					if flipped {
						return compare(r, exactly(value), exactly(x))
					}
					return compare(r, exactly(x), exactly(value))
				}
				for i, fewest := range numbers {
					var may Outcome
					for _, most := range numbers[i:] {
						may |= holds(most)
						require.Equal(t, may, l.verdict(fewest, most), "relation %d, %d, flipped %t: %d to %d", r, value, flipped, fewest, most)
						if hasOpposite {
							require.Equal(t, may.not(), opposite.verdict(fewest, most), "opposite of relation %d, %d, flipped %t: %d to %d", r, value, flipped, fewest, most)
						}
					}
				}
				if value == math.MinInt64 || value == math.MaxInt64 {
					continue // everything and nothing need none
				}
				require.Equal(t, r != equal || value <= 0, hasOpposite, "relation %d, %d, flipped %t", r, value, flipped)
			}
		}
	}
}

func TestSaturated(t *testing.T) {
	require.Equal(t, int64(3), saturated(1, 2))
	require.Equal(t, int64(-1), saturated(1, -2))
	require.Equal(t, int64(math.MaxInt64), saturated(math.MaxInt64, 1))
	require.Equal(t, int64(math.MaxInt64), saturated(math.MaxInt64-1, 1))
	require.Equal(t, int64(math.MinInt64), saturated(math.MinInt64, -1))
	require.Equal(t, int64(-1), saturated(math.MinInt64, math.MaxInt64))
}
