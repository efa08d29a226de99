// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"
)

func TestListCandidates(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{
		slice("2", newDevice("c", nil), newDevice("a", nil, shared)).pool("pool-1", 1, 2),
		slice("1", newDevice("b", nil)).pool("pool-1", 1, 2),
		slice("3", newDevice("a", nil)).pool("pool-0", 1, 1),
	}}
	list := func(features structured.Features) (ids []string, shared []bool) {
		s.features = &features
		for i, c := range s.search(t).inventory.Candidates {
			require.Equal(t, i, c.Position)
			require.Equal(t, c.Device.Name, c.ID.Device.String())
			ids, shared = append(ids, c.ID.String()), append(shared, c.Shared)
		}
		return ids, shared
	}
	ids, shared := list(allOn)
	require.Equal(t, []string{"mla.example.com/pool-0/a", "mla.example.com/pool-1/b", "mla.example.com/pool-1/c", "mla.example.com/pool-1/a"}, ids)
	require.Equal(t, []bool{false, false, false, true}, shared)
	_, shared = list(structured.Features{})
	require.Equal(t, []bool{false, false, false, false}, shared)
}
