// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

func TestLayoutProperties(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyTopology().Draw(t, "topology")
		layout := topo.Layout()
		at := map[topology.Point]string{}
		for i, place := range layout.Places {
			require.Equal(t, topo.Devices[i].Name, place.Device)
			require.NotContains(t, at, place.At, "two devices at one point")
			at[place.At] = place.Device
			requireInside(t, layout, place.At)
		}
		require.Len(t, at, len(topo.Devices))
		require.Len(t, layout.Links, len(topo.Edges()))
		for i, link := range layout.Links {
			require.Equal(t, topo.Edges()[i], link.Edge)
			require.Equal(t, link.A, at[link.Path[0]])
			require.Equal(t, link.B, at[link.Path[len(link.Path)-1]])
			if topo.Kind != topology.HybridCubeMesh && !link.Wraps {
				requireClear(t, at, link)
			}
			for _, point := range link.Path {
				requireInside(t, layout, point)
			}
		}
	})
}

func requireInside(t require.TestingT, layout topology.Layout, p topology.Point) {
	require.True(t, p.Row >= 0 && p.Row < layout.Rows && p.Col >= 0 && p.Col < layout.Cols,
		"%v in %dx%d", p, layout.Rows, layout.Cols)
}

// requireClear walks along a path and meets no device on the way.
func requireClear(t require.TestingT, at map[topology.Point]string, link topology.Link) {
	last := link.Path[len(link.Path)-1]
	for i := range len(link.Path) - 1 {
		p, end := link.Path[i], link.Path[i+1]
		require.True(t, (p.Row == end.Row) != (p.Col == end.Col), "%v is not straight", link.Path)
		for p != end {
			p.Row += sign(end.Row - p.Row)
			p.Col += sign(end.Col - p.Col)
			if p != last {
				require.NotContains(t, at, p, "link of %s and %s", link.A, link.B)
			}
		}
	}
}

func sign(n int) int {
	return min(1, max(-1, n))
}

// TestRingLayoutGoesRound: the paths of a ring's links cover each point of the
// rectangle's sides once, so the drawing is one closed line.
func TestRingLayoutGoesRound(t *testing.T) {
	for n := 3; n <= 70; n++ {
		layout := ring(t, n).Layout()
		require.LessOrEqual(t, layout.Cols, 8)
		length := 0
		for _, link := range layout.Links {
			for i := range len(link.Path) - 1 {
				a, b := link.Path[i], link.Path[i+1]
				length += max(a.Row-b.Row, b.Row-a.Row) + max(a.Col-b.Col, b.Col-a.Col)
			}
		}
		require.Equal(t, 2*(layout.Rows-1)+2*(layout.Cols-1), length, "ring of %d", n)
	}
}
