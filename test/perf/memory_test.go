// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/shape"
)

// TestMemoryOfNodes pins what docs/limits.md says that a cache takes for a node, with claims
// of one kind: on nodes of one hardware type of which others are in use on each, also if their
// devices have serial numbers; and on nodes no two of which are equal, because an expression
// may read those.
func TestMemoryOfNodes(t *testing.T) {
	const nodes = 1000
	tests := []struct {
		scenario      string
		serials, read bool
		limit         int
	}{
		{"grid-4x4-4", false, false, 4 << 10},
		{"grid-4x4-4", true, false, 4 << 10},
		{"grid-4x4-4", true, true, 48 << 10},
		{"grid-8x8-4", false, false, 10 << 10},
		{"grid-8x8-4", true, false, 10 << 10},
		{"grid-8x8-4", true, true, 160 << 10},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s/serials=%t/read=%t", test.scenario, test.serials, test.read), func(t *testing.T) {
			s := scenarioNamed(t, test.scenario)
			cache := allocator.NewCache()
			hardware := newHardware(t, s, nodes)
			if test.serials {
				hardware.number()
			}
			fleet := hardware.occupied(s.Variants(s.Occupancies[2], nodes))
			expression := s.Expression
			if test.read {
				expression = "(" + expression + ") && devices.all(d, d.attributes[d.driver].serial != '')"
			}
			claim, err := s.ClaimWith(expression)
			require.NoError(t, err)
			fleet.askAll(t, cache, claim)
			cache = allocator.NewCache() // what is compiled once is there
			before := heap()
			fleet.askAll(t, cache, claim)
			perNode := (heap() - before) / nodes
			t.Logf("%d bytes for a node, of which the cache counts %d", perNode, cache.Used()/nodes)
			require.Less(t, perNode, test.limit)
			require.Greater(t, perNode, 500, "what is measured is not there")
			runtime.KeepAlive(cache)
			runtime.KeepAlive(fleet)
		})
	}
}

func scenarioNamed(tb testing.TB, name string) shape.Scenario {
	tb.Helper()
	all := shape.Scenarios()
	i := slices.IndexFunc(all, func(s shape.Scenario) bool { return s.Name == name })
	require.GreaterOrEqual(tb, i, 0, name)
	return all[i]
}

// number gives each device of each node an attribute of its own.
func (h *hardware) number() {
	for _, published := range h.slices {
		for _, slice := range published {
			for i := range slice.Spec.Devices {
				slice.Spec.Devices[i].Attributes["serial"] = resourceapi.DeviceAttribute{
					StringValue: ptr.To(slice.Spec.Pool.Name + "-" + slice.Spec.Devices[i].Name),
				}
			}
		}
	}
}

// askAll asks an allocator that is dropped then for all nodes.
func (f *fleet) askAll(t *testing.T, cache *allocator.Cache, claim *resourceapi.ResourceClaim) {
	t.Helper()
	a, err := f.celset(t.Context(), allocator.WithCache(cache))
	require.NoError(t, err)
	for _, node := range f.nodes {
		_, err := a.Allocate(t.Context(), node, []*resourceapi.ResourceClaim{claim})
		require.NoError(t, err, node.Name)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}
