// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

func TestSelect(t *testing.T) {
	topo := ring(t, 4)
	devices, err := topo.Select([]string{"mla-2", "mla-0"})
	require.NoError(t, err)
	require.Equal(t, []topology.Device{topo.Devices[2], topo.Devices[0]}, devices)

	for want, names := range map[string][]string{
		`ring of 4 mla.example.com: no device named`:                nil,
		`ring of 4 mla.example.com: has no device "mla-4"`:          {"mla-0", "mla-4"},
		`ring of 4 mla.example.com: device "mla-1" is named twice`:  {"mla-1", "mla-0", "mla-1"},
		`ring of 4 mla.example.com: has no device "MLA-0"`:          {"MLA-0"},
		`ring of 4 mla.example.com: has no device "mla-1 or mla-2"`: {"mla-1 or mla-2"},
	} {
		_, err := topo.Select(names)
		require.EqualError(t, err, want)
	}
}

// TestRefused: no check passes a set that is not one, whatever the kind.
func TestRefused(t *testing.T) {
	for _, topo := range []topology.Topology{
		ring(t, 4), mesh(t, 2, 2), torus(t, 2, 2), bridgePairs(t, 4), couples(t, 2),
		cubeMesh(t, topology.PeersAsString),
	} {
		first := topo.Devices[0].Name
		partner := topo.Devices[0].Neighbors[0]
		for _, names := range [][]string{nil, {}, {first, partner, first, partner}, {first, "other"}, {"other"}} {
			require.False(t, topo.Connected(names), "%s %v", topo, names)
			require.False(t, topo.Contiguous(names), "%s %v", topo, names)
			require.False(t, topo.IsClique(names), "%s %v", topo, names)
			require.False(t, topo.WholePairs(names), "%s %v", topo, names)
			require.False(t, topo.WholeCouples(names), "%s %v", topo, names)
			require.False(t, topo.IsBlock(names, 1, max(1, len(names))), "%s %v", topo, names)
		}
		require.False(t, topo.Kind != topology.Ring && topo.Contiguous([]string{first, partner}))
		require.False(t, topo.Kind != topology.BridgePairs && topo.WholePairs([]string{first, partner}))
		require.False(t, topo.Kind != topology.Couples && topo.WholeCouples([]string{first, partner}))
		require.False(t, topo.Adjacent(first, "other"))
		require.False(t, topo.Adjacent("other", first))
		require.False(t, topo.Adjacent(first, first))
	}
}

// TestContiguousByCounting: in a ring a set that is not all of it is contiguous
// if exactly one member has no member after it.
func TestContiguousByCounting(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyRing().Draw(t, "ring")
		names := anySet(t, topo, 12)
		ends := 0
		for i, d := range topo.Devices {
			next := topo.Devices[(i+1)%len(topo.Devices)]
			if slices.Contains(names, d.Name) && !slices.Contains(names, next.Name) {
				ends++
			}
		}
		require.Equal(t, ends <= 1, topo.Contiguous(names))
	})
}

// TestConnectedByMerging compares with merging the classes of linked devices.
func TestConnectedByMerging(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyTopology().Draw(t, "topology")
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
		require.Equal(t, len(classes) == 1, topo.Connected(names))
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
		"row lying":              {mesh(t, 4, 4), []string{"mla-0", "mla-1", "mla-2", "mla-3"}, 4, 1, false},
		"over the edge of mesh":  {mesh(t, 4, 4), across, 2, 2, false},
		"over the edge of torus": {torus(t, 4, 4), across, 2, 2, true},
		"corners of torus":       {torus(t, 4, 4), corners, 2, 2, true},
		"larger than the mesh":   {mesh(t, 2, 2), []string{"mla-0", "mla-1", "mla-2", "mla-3"}, 1, 4, false},
		"negative":               {mesh(t, 2, 4), square, -2, -2, false},
		"no grid":                {ring(t, 4), []string{"mla-0", "mla-1"}, 1, 2, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.topology.IsBlock(test.names, test.rows, test.cols))
		})
	}
}

// TestIsBlockExactly builds a block anywhere and checks that it is one, and that
// it is none when one of its devices is exchanged for another.
func TestIsBlockExactly(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := anyGrid().Draw(t, "grid")
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
		require.True(t, topo.IsBlock(block, rows, cols))
		require.True(t, topo.Connected(block))
		// Two blocks of one size differ by at least a row or a column.
		if rows > 1 && cols > 1 && len(rest) > 0 {
			block[0] = rapid.SampledFrom(rest).Draw(t, "other")
			require.False(t, topo.IsBlock(block, rows, cols))
		}
	})
}

func TestIsClique(t *testing.T) {
	topo := cubeMesh(t, topology.PeersAsString)
	for _, names := range [][]string{
		{"mla-0"},
		{"mla-0", "mla-4"},
		{"mla-2", "mla-0", "mla-1"},
		{"mla-0", "mla-1", "mla-2", "mla-3"},
		{"mla-7", "mla-6", "mla-5", "mla-4"},
	} {
		require.True(t, topo.IsClique(names), names)
	}
	for _, names := range [][]string{
		{"mla-0", "mla-5"},
		{"mla-0", "mla-1", "mla-4"},
		{"mla-0", "mla-1", "mla-4", "mla-5"},
	} {
		require.False(t, topo.IsClique(names), names)
	}
	require.True(t, topo.Connected([]string{"mla-0", "mla-1", "mla-4"}), "connected is less than a clique")
}

// TestWholeByAttribute: a set is whole if every value of the attribute occurs
// twice in it.
func TestWholeByAttribute(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo, value := bridgePairs(t, 8), topology.AttributeBridge
		check := topo.WholePairs
		if rapid.Bool().Draw(t, "couples") {
			topo, value = couples(t, 4), topology.AttributePCIeRoot
			check = topo.WholeCouples
		}
		names := anySet(t, topo, 8)
		counts := map[string]int{}
		for _, d := range topo.Devices {
			if slices.Contains(names, d.Name) {
				counts[text(d, resourceapi.QualifiedName(value))]++
			}
		}
		want := true
		for _, n := range counts {
			want = want && n == 2
		}
		require.Equal(t, want, check(names))
	})
}
