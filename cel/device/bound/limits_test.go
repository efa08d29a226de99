// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

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
