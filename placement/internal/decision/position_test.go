// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// TestPositions checks that find returns the position of each cluster, but only until the cluster is marked as placed.
func TestPositions(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,3}`), 0, 12, rapid.ID[string]).Draw(t, "names")
		groups := make([]piece, 3)
		want := map[string]position{}
		for _, name := range names {
			g := rapid.IntRange(0, 2).Draw(t, "group")
			want[name] = position{name, g, len(groups[g].members)}
			one := member{}
			one.decision.ClusterName = name
			groups[g].members = append(groups[g].members, one)
		}
		s := positionsOf(groups)
		for range 30 {
			name := rapid.OneOf(rapid.SampledFrom(append(names, "")), rapid.StringMatching(`[a-d]{1,3}`)).Draw(t, "name")
			at, found := s.find(name)
			is, there := want[name]
			require.Equal(t, there, found, name)
			if found {
				require.Equal(t, is, at)
				if rapid.Bool().Draw(t, "place") {
					s.placed[at.group][at.index] = true
					delete(want, name)
				}
			}
		}
	})
}
