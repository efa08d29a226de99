// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package candidate

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// avoided returns 1 if the candidate has an avoided taint, otherwise 0.
func avoided(c *Candidate) int {
	if c.Avoided != nil {
		return 1
	}
	return 0
}

// TestCountedIsSorted checks that byCounting returns the same order as a comparison sort.
func TestCountedIsSorted(t *testing.T) {
	seen := map[bool]int{}
	cases.Check(t, func(t *rapid.T) {
		taint, apart := &clusterv1.Taint{}, rapid.Int64Range(0, 20).Draw(t, "apart")
		base := rapid.Int64Range(-1000, 1000).Draw(t, "base")
		var candidates []*Candidate
		for i := range rapid.IntRange(0, 40).Draw(t, "candidates") {
			c := &Candidate{position: int32(i), Total: base + rapid.Int64Range(0, apart).Draw(t, "total")}
			if rapid.Bool().Draw(t, "avoided") {
				c.Avoided = taint
			}
			candidates = append(candidates, c)
		}
		want := slices.Clone(candidates)
		slices.SortStableFunc(want, func(a, b *Candidate) int {
			return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(avoided(a), avoided(b)))
		})
		got := byCounting(candidates)
		seen[got != nil]++
		if got != nil {
			require.Equal(t, want, got)
		}
	})
	require.Positive(t, seen[true])
}
