// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

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
		"add":      {Add, (*big.Int).Add},
		"subtract": {Subtract, (*big.Int).Sub},
		"multiply": {Multiply, (*big.Int).Mul},
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

func drawNumber(t *rapid.T, name string) Number {
	least := rapid.Int64Range(-4, 4).Draw(t, name)
	return Number{Least: least, Most: least + rapid.Int64Range(0, 3).Draw(t, name), Fails: rapid.Bool().Draw(t, name)}
}

func TestArithmeticIncludesAllValues(t *testing.T) {
	cases.CheckN(t, cases.Of(2000, 10_000), func(t *rapid.T) {
		a, b := drawNumber(t, "a"), drawNumber(t, "b")
		for _, f := range []Operation{Addition, Subtraction, Multiplication} {
			result := Combine(a, b, f)
			require.Equal(t, a.Fails || b.Fails, result.Fails)
			least, most := int64(math.MaxInt64), int64(math.MinInt64)
			for x := a.Least; x <= a.Most; x++ {
				for y := b.Least; y <= b.Most; y++ {
					value, _ := f.apply(x, y)
					least, most = min(least, value), max(most, value)
				}
			}
			require.Equal(t, least, result.Least)
			require.Equal(t, most, result.Most)
		}
		relations := map[Relation]func(x, y int64) bool{
			Equal:       func(x, y int64) bool { return x == y },
			Less:        func(x, y int64) bool { return x < y },
			LessOrEqual: func(x, y int64) bool { return x <= y },
		}
		for r, holds := range relations {
			var want Outcome
			if a.Fails || b.Fails {
				want = Error
			}
			for x := a.Least; x <= a.Most; x++ {
				for y := b.Least; y <= b.Most; y++ {
					want |= Of(holds(x, y))
				}
			}
			require.Equal(t, want, Compare(r, a, b))
		}
		require.Equal(t, -a.Most, a.Negate().Least)
		require.Equal(t, min(a.Least, b.Least), Either(a, b).Least)
		require.Equal(t, max(a.Most, b.Most), Either(a, b).Most)
	})
}

func TestFailureAndOpenNumbers(t *testing.T) {
	require.Equal(t, Error, Compare(Equal, Never, Exactly(1)))
	require.Equal(t, Error, Compare(Equal, Exactly(1), Never))
	require.Equal(t, Open, Compare(Less, OpenNumber, Exactly(1)))
	require.True(t, Combine(Never, Exactly(1), Addition).IsNever())
	require.True(t, Combine(OpenNumber, Exactly(1), Addition).Open)
	require.Equal(t, Number{Least: 1, Most: 1, Fails: true}, Either(Never, Exactly(1)))
	require.Equal(t, Number{Least: 1, Most: 1, Fails: true}, Either(Exactly(1), Never))
	require.True(t, Either(OpenNumber, Exactly(1)).Open)
	require.True(t, Number{Least: math.MinInt64, Most: 0}.Negate().Open)
	overflowing := Combine(Number{Least: 0, Most: math.MaxInt64}, Exactly(1), Addition)
	require.Equal(t, Number{Least: math.MinInt64, Most: math.MaxInt64, Fails: true}, overflowing)
}

// TestLimits checks that limits and comparisons give the same outcome for numbers of devices.
func TestLimits(t *testing.T) {
	values := []int64{math.MinInt64, -1, 0, 1, 2, 3, 4, math.MaxInt64}
	numbers := []int64{0, 1, 2, 3, 4}
	for _, r := range []Relation{Equal, Less, LessOrEqual} {
		for _, value := range values {
			for _, flipped := range []bool{false, true} {
				l := LimitsOf(r, value, flipped)
				opposite, hasOpposite := l.Opposite()
				holds := func(x int64) Outcome {
					if flipped {
						return Compare(r, Exactly(value), Exactly(x))
					}
					return Compare(r, Exactly(x), Exactly(value))
				}
				for i, fewest := range numbers {
					var may Outcome
					for _, most := range numbers[i:] {
						may |= holds(most)
						require.Equal(t, may, l.Verdict(fewest, most), "relation %d, %d, flipped %t: %d to %d", r, value, flipped, fewest, most)
						if hasOpposite {
							require.Equal(t, may.Not(), opposite.Verdict(fewest, most), "opposite of relation %d, %d, flipped %t: %d to %d", r, value, flipped, fewest, most)
						}
					}
				}
				if value == math.MinInt64 || value == math.MaxInt64 {
					continue // limits with all numbers or none may lack an opposite
				}
				require.Equal(t, r != Equal || value <= 0, hasOpposite, "relation %d, %d, flipped %t", r, value, flipped)
			}
		}
	}
}

func TestSaturated(t *testing.T) {
	require.Equal(t, int64(3), Saturated(1, 2))
	require.Equal(t, int64(-1), Saturated(1, -2))
	require.Equal(t, int64(math.MaxInt64), Saturated(math.MaxInt64, 1))
	require.Equal(t, int64(math.MaxInt64), Saturated(math.MaxInt64-1, 1))
	require.Equal(t, int64(math.MinInt64), Saturated(math.MinInt64, -1))
	require.Equal(t, int64(-1), Saturated(math.MinInt64, math.MaxInt64))
}
