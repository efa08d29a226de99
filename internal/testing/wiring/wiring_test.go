// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomtopology"
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
)

// TestRefused checks that every check returns false for an invalid set.
func TestRefused(t *testing.T) {
	for _, topo := range []topology.Topology{
		randomtopology.NewRing(t, 4), randomtopology.NewMesh(t, 2, 2), randomtopology.NewTorus(t, 2, 2), randomtopology.NewBridgePairs(t, 4), randomtopology.NewCouples(t, 2),
		randomtopology.NewCubeMesh(t, topology.PeersAsString),
	} {
		first := topo.Devices[0].Name
		partner := topo.Devices[0].Neighbors[0]
		for _, names := range [][]string{nil, {}, {first, partner, first, partner}, {first, "other"}, {"other"}} {
			require.False(t, wiring.Connected(topo, names), "%s %v", topo, names)
			require.False(t, wiring.Contiguous(topo, names), "%s %v", topo, names)
			require.False(t, wiring.IsClique(topo, names), "%s %v", topo, names)
			require.False(t, wiring.WholePairs(topo, names), "%s %v", topo, names)
			require.False(t, wiring.WholeCouples(topo, names), "%s %v", topo, names)
			require.False(t, wiring.IsBlock(topo, names, 1, max(1, len(names))), "%s %v", topo, names)
		}
		require.False(t, topo.Kind != topology.Ring && wiring.Contiguous(topo, []string{first, partner}))
		require.False(t, topo.Kind != topology.BridgePairs && wiring.WholePairs(topo, []string{first, partner}))
		require.False(t, topo.Kind != topology.Couples && wiring.WholeCouples(topo, []string{first, partner}))
	}
}

// TestContiguousByCounting compares Contiguous with a count: a part of a ring is a stretch if exactly one of its devices has no
// successor in the set.
func TestContiguousByCounting(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Rings().Draw(t, "ring")
		names := anySet(t, topo, 12)
		ends := 0
		for i, d := range topo.Devices {
			next := topo.Devices[(i+1)%len(topo.Devices)]
			if slices.Contains(names, d.Name) && !slices.Contains(names, next.Name) {
				ends++
			}
		}
		require.Equal(t, ends <= 1, wiring.Contiguous(topo, names))
	})
}

// TestConnectedByMerging compares Connected with a simple algorithm that merges linked devices into groups.
func TestConnectedByMerging(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Any().Draw(t, "topology")
		names := anySet(t, topo, 12)
		class := map[string]string{}
		for _, name := range names {
			class[name] = name
		}
		for _, edge := range topo.Edges() {
			from, to := class[edge.A], class[edge.B]
			if from == "" || to == "" {
				continue
			}
			for name := range class {
				if class[name] == from {
					class[name] = to
				}
			}
		}
		classes := map[string]bool{}
		for _, c := range class {
			classes[c] = true
		}
		require.Equal(t, len(classes) == 1, wiring.Connected(topo, names))
	})
}

func TestIsBlock(t *testing.T) {
	square := []string{"mla-0", "mla-1", "mla-4", "mla-5"}
	across := []string{"mla-3", "mla-0", "mla-7", "mla-4"}
	corners := []string{"mla-0", "mla-3", "mla-12", "mla-15"}
	tests := map[string]struct {
		topology   topology.Topology
		names      []string
		rows, cols int
		want       bool
	}{
		"row lying":              {randomtopology.NewMesh(t, 4, 4), []string{"mla-0", "mla-1", "mla-2", "mla-3"}, 4, 1, false},
		"over the edge of mesh":  {randomtopology.NewMesh(t, 4, 4), across, 2, 2, false},
		"over the edge of torus": {randomtopology.NewTorus(t, 4, 4), across, 2, 2, true},
		"corners of torus":       {randomtopology.NewTorus(t, 4, 4), corners, 2, 2, true},
		"larger than the mesh":   {randomtopology.NewMesh(t, 2, 2), []string{"mla-0", "mla-1", "mla-2", "mla-3"}, 1, 4, false},
		"negative":               {randomtopology.NewMesh(t, 2, 4), square, -2, -2, false},
		"no grid":                {randomtopology.NewRing(t, 4), []string{"mla-0", "mla-1"}, 1, 2, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, wiring.IsBlock(test.topology, test.names, test.rows, test.cols))
		})
	}
}

// TestIsBlockExactly checks that IsBlock accepts a block at any position, and rejects the block if one device is replaced.
func TestIsBlockExactly(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Grids().Draw(t, "grid")
		rows := rapid.IntRange(1, topo.Rows).Draw(t, "rows")
		cols := rapid.IntRange(1, topo.Cols).Draw(t, "cols")
		topLeft, mostRow, mostCol := topology.Coordinates{}, topo.Rows-rows, topo.Cols-cols
		if topo.Kind == topology.Torus {
			mostRow, mostCol = topo.Rows-1, topo.Cols-1
		}
		topLeft.Row = rapid.IntRange(0, mostRow).Draw(t, "top")
		topLeft.Col = rapid.IntRange(0, mostCol).Draw(t, "left")
		var block, rest []string
		for _, d := range topo.Devices {
			row := (d.Coordinates.Row - topLeft.Row + topo.Rows) % topo.Rows
			col := (d.Coordinates.Col - topLeft.Col + topo.Cols) % topo.Cols
			if row < rows && col < cols {
				block = append(block, d.Name)
			} else {
				rest = append(rest, d.Name)
			}
		}
		block = rapid.Permutation(block).Draw(t, "block")
		require.True(t, wiring.IsBlock(topo, block, rows, cols))
		require.True(t, wiring.Connected(topo, block))
		// Two different blocks of the same size differ by at least a row or a column, so a block with one replaced device is no
		// block.
		if rows > 1 && cols > 1 && len(rest) > 0 {
			block[0] = rapid.SampledFrom(rest).Draw(t, "other")
			require.False(t, wiring.IsBlock(topo, block, rows, cols))
		}
	})
}

func TestIsClique(t *testing.T) {
	topo := randomtopology.NewCubeMesh(t, topology.PeersAsString)
	for _, names := range [][]string{
		{"mla-0"},
		{"mla-0", "mla-4"},
		{"mla-2", "mla-0", "mla-1"},
		{"mla-0", "mla-1", "mla-2", "mla-3"},
		{"mla-7", "mla-6", "mla-5", "mla-4"},
	} {
		require.True(t, wiring.IsClique(topo, names), names)
	}
	for _, names := range [][]string{
		{"mla-0", "mla-5"},
		{"mla-0", "mla-1", "mla-4"},
		{"mla-0", "mla-1", "mla-4", "mla-5"},
	} {
		require.False(t, wiring.IsClique(topo, names), names)
	}
	require.True(t, wiring.Connected(topo, []string{"mla-0", "mla-1", "mla-4"}), "connected is less than a clique")
}

// TestWholeByAttribute compares WholePairs and WholeCouples with a count: a set is whole if each value of the attribute occurs
// twice.
func TestWholeByAttribute(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo, value := randomtopology.NewBridgePairs(t, 8), topology.AttributeBridge
		check := wiring.WholePairs
		if rapid.Bool().Draw(t, "couples") {
			topo, value = randomtopology.NewCouples(t, 4), topology.AttributePCIeRoot
			check = wiring.WholeCouples
		}
		names := anySet(t, topo, 8)
		counts := map[string]int{}
		for _, d := range topo.Devices {
			if slices.Contains(names, d.Name) {
				counts[*d.Attributes[resourceapi.QualifiedName(value)].StringValue]++
			}
		}
		want := true
		for _, n := range counts {
			want = want && n == 2
		}
		require.Equal(t, want, check(topo, names))
	})
}

// anySet generates a set of at least one device, as names in any order. It prefers adjacent devices, because otherwise few sets
// would have a shape that the checks accept.
func anySet(t *rapid.T, topo topology.Topology, most int) []string {
	names := []string{rapid.SampledFrom(topo.Devices).Draw(t, "first").Name}
	for range rapid.IntRange(0, most-1).Draw(t, "more") {
		from, _ := topo.Device(rapid.SampledFrom(names).Draw(t, "from"))
		next := rapid.SampledFrom(topo.Devices).Draw(t, "device").Name
		if len(from.Neighbors) > 0 && rapid.IntRange(0, 9).Draw(t, "near") > 0 {
			next = rapid.SampledFrom(from.Neighbors).Draw(t, "neighbor")
		}
		names = append(names, next)
	}
	slices.Sort(names)
	return rapid.Permutation(slices.Compact(names)).Draw(t, "set")
}
