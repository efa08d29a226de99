// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawn(t *testing.T, n int) []int {
	t.Helper()
	var values []int
	CheckN(t, n, func(t *rapid.T) { values = append(values, rapid.Int().Draw(t, "value")) })
	return values
}

func TestCasesAreTheSameInEachRun(t *testing.T) {
	first := drawn(t, 30)
	require.Len(t, first, 30)
	require.Equal(t, first, drawn(t, 30))
	t.Run("but others for another test", func(t *testing.T) { require.NotEqual(t, first, drawn(t, 30)) })
}

func TestUntilDrawsOtherCases(t *testing.T) {
	seen := map[int]bool{}
	rounds := 0
	Until(t, 10, func() bool { rounds++; return rounds == 4 }, func(t *rapid.T) {
		seen[rapid.IntRange(0, 1<<40).Draw(t, "value")] = true
	})
	require.Equal(t, 4, rounds)
	require.Greater(t, len(seen), 15, "more than one round has")
}

func TestParallelTestsHaveTheirNumbers(t *testing.T) {
	for _, n := range []int{1, 20, 300} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			require.Len(t, drawn(t, n), n)
		})
	}
}
