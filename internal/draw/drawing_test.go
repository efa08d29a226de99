// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/randomtopology"
	"github.com/celset/celset/internal/topology"
)

var update = flag.Bool("update", false, "rewrite the drawings in testdata")

func chosen(names ...string) map[string]draw.Mark {
	marks := map[string]draw.Mark{}
	for _, name := range names {
		marks[name] = draw.Mark{State: draw.Chosen}
	}
	return marks
}

// taken adds marks of devices that an owner uses.
func taken(marks map[string]draw.Mark, owner string, names ...string) map[string]draw.Mark {
	for _, name := range names {
		marks[name] = draw.Mark{State: draw.Taken, Owner: owner}
	}
	return marks
}

// TestDraw compares drawings with the files testdata/<name>.txt. The flag -update rewrites the files.
func TestDraw(t *testing.T) {
	tests := []struct {
		name     string
		topology topology.Topology
		marks    map[string]draw.Mark
		options  []draw.Option
	}{
		{name: "ring-3", topology: randomtopology.NewRing(t, 3), marks: chosen("mla-1", "mla-2")},
		{name: "ring-4", topology: randomtopology.NewRing(t, 4)},
		{name: "ring-5", topology: randomtopology.NewRing(t, 5), marks: chosen("mla-3", "mla-4")},
		{name: "ring-8", topology: randomtopology.NewRing(t, 8),
			marks: taken(taken(chosen("mla-7", "mla-0", "mla-1"), "train-a", "mla-3", "mla-4"), "", "mla-5")},
		{name: "ring-8-color", topology: randomtopology.NewRing(t, 8), options: []draw.Option{draw.WithColor()},
			marks: taken(chosen("mla-7", "mla-0"), "train-a", "mla-3", "mla-4")},
		{name: "ring-12", topology: randomtopology.NewRing(t, 12), marks: chosen("mla-2", "mla-3", "mla-4", "mla-5")},
		{name: "ring-16", topology: randomtopology.NewRing(t, 16), marks: taken(chosen("mla-0"), "train-a", "mla-15")},
		{name: "ring-31", topology: randomtopology.NewRing(t, 31), marks: chosen("mla-23", "mla-24")},
		{name: "mesh-1x4", topology: randomtopology.NewMesh(t, 1, 4), marks: chosen("mla-1", "mla-2")},
		{name: "mesh-2x4", topology: randomtopology.NewMesh(t, 2, 4),
			marks: taken(chosen("mla-0", "mla-1", "mla-4", "mla-5"), "train-a", "mla-3", "mla-7")},
		{name: "mesh-4x4", topology: randomtopology.NewMesh(t, 4, 4)},
		{name: "torus-2x3", topology: randomtopology.NewTorus(t, 2, 3), marks: chosen("mla-0", "mla-2")},
		{name: "torus-4x4", topology: randomtopology.NewTorus(t, 4, 4), marks: chosen("mla-0", "mla-3", "mla-12", "mla-15")},
		{name: "torus-8x8", topology: randomtopology.NewTorus(t, 8, 8),
			marks: taken(chosen("mla-9", "mla-10", "mla-17", "mla-18"), "train-a", "mla-62", "mla-63")},
		{name: "bridge-pairs-8", topology: randomtopology.NewBridgePairs(t, 8),
			marks: taken(chosen("gpu-2", "gpu-3"), "infer-1", "gpu-0")},
		{name: "bridge-pairs-24", topology: randomtopology.NewBridgePairs(t, 24), marks: chosen("gpu-0", "gpu-1")},
		{name: "couples-4", topology: randomtopology.NewCouples(t, 4),
			marks: taken(chosen("gpu-0", "nic-0", "gpu-1", "nic-1"), "infer-1", "gpu-3")},
		{name: "hybrid-cube-mesh", topology: randomtopology.NewCubeMesh(t, topology.PeersAsString),
			marks: taken(chosen("mla-0", "mla-1", "mla-2", "mla-3"), "train-a", "mla-4", "mla-5")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			requireDrawing(t, test.name, drawn(t, test.topology, test.marks, test.options...))
		})
	}
}

func requireDrawing(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err, "run the test with -update to create the file")
	require.Empty(t, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")), "run with -update if that is intended")
}

func drawn(t require.TestingT, topo topology.Topology, marks map[string]draw.Mark, opts ...draw.Option) string {
	var out bytes.Buffer
	require.NoError(t, draw.Text(&out, topo, marks, opts...))
	return out.String()
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestDrawProperties(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Any().Draw(t, "topology")
		marks := anyMarks(topo).Draw(t, "marks")
		plain := drawn(t, topo, marks)
		colored := drawn(t, topo, marks, draw.WithColor())
		require.Equal(t, plain, ansi.ReplaceAllString(colored, ""), "colour must not move anything")
		for _, d := range topo.Devices {
			box := regexp.MustCompile(`\[` + d.Name + ` +([a-zA-Z.*#])\]`)
			found := box.FindAllStringSubmatch(plain, -1)
			require.Len(t, found, 1, "boxes of %s in\n%s", d.Name, plain)
			require.Equal(t, marks[d.Name].State, stateOf(found[0][1]), "%s in\n%s", d.Name, plain)
		}
		for line := range strings.Lines(plain) {
			text := strings.TrimSuffix(line, "\n")
			require.Equal(t, strings.TrimRight(text, " "), text, "trailing blanks")
			require.False(t, strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }), text)
		}
	})
}

func stateOf(symbol string) draw.State {
	switch symbol {
	case ".":
		return draw.Free
	case "*":
		return draw.Chosen
	default:
		return draw.Taken
	}
}

func anyMarks(topo topology.Topology) *rapid.Generator[map[string]draw.Mark] {
	return rapid.Custom(func(t *rapid.T) map[string]draw.Mark {
		marks := map[string]draw.Mark{}
		for _, d := range topo.Devices {
			marks[d.Name] = draw.Mark{
				State: rapid.SampledFrom([]draw.State{draw.Free, draw.Taken, draw.Chosen}).Draw(t, "state"),
				Owner: rapid.SampledFrom([]string{"", "train-a", "infer-1"}).Draw(t, "owner"),
			}
		}
		return marks
	})
}

func TestDrawFitsTerminal(t *testing.T) {
	usual := []topology.Topology{
		randomtopology.NewMesh(t, 8, 8), randomtopology.NewTorus(t, 8, 8), randomtopology.NewTorus(t, 4, 8), randomtopology.NewCouples(t, 16), randomtopology.NewBridgePairs(t, 16),
		randomtopology.NewCubeMesh(t, topology.PeersAsStringAndList),
	}
	for n := 3; n <= 64; n++ {
		usual = append(usual, randomtopology.NewRing(t, n))
	}
	for _, topo := range usual {
		for line := range strings.Lines(drawn(t, topo, nil)) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100, "%s: %s", topo, line)
		}
	}
}

func TestDrawManyOwners(t *testing.T) {
	topo := randomtopology.NewRing(t, 60)
	marks := map[string]draw.Mark{}
	for _, d := range topo.Devices {
		taken(marks, "owner-of-"+d.Name, d.Name)
	}
	drawing := drawn(t, topo, marks)
	require.Contains(t, drawing, "[mla-0  a]")
	require.Contains(t, drawing, "[mla-51 Z]")
	require.Contains(t, drawing, "[mla-52 #]", "letters end after 52 owners")
	require.Contains(t, drawing, "Z taken by owner-of-mla-51 (1)")
	require.Contains(t, drawing, "# taken (8)")
	for line := range strings.Lines(drawing) {
		require.LessOrEqual(t, len(line), 101, "the legend is wrapped")
	}
}

func TestDrawUnknownDevice(t *testing.T) {
	var out bytes.Buffer
	err := draw.Text(&out, randomtopology.NewRing(t, 4), chosen("mla-9", "mla-4", "mla-0"))
	require.EqualError(t, err,
		"draw: ring of 4 mla.example.com: has no device mla-4, mla-9: mark only devices of the topology")
	require.Empty(t, out.String())
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestDrawReportsWriteError(t *testing.T) {
	err := draw.Text(brokenWriter{}, randomtopology.NewRing(t, 4), nil)
	require.EqualError(t, err, "draw ring of 4 mla.example.com: broken pipe")
}

// TestDrawByHand checks that a topology that no generator can create is drawn without a panic, as far as possible.
func TestDrawByHand(t *testing.T) {
	kinds := []topology.Kind{
		"", topology.Ring, topology.Mesh, topology.Torus, topology.BridgePairs, topology.Couples,
		topology.HybridCubeMesh,
	}
	for _, kind := range kinds {
		require.NotEmpty(t, drawn(t, topology.Topology{Kind: kind}, nil), kind)
		alone := topology.Device{Name: "a", Neighbors: []string{"elsewhere"}}
		require.Contains(t, drawn(t, topology.Topology{Kind: kind, Devices: []topology.Device{alone}}, nil), "[a .]", kind)
	}
}

func TestDrawPlacedDevices(t *testing.T) {
	placed := topology.Topology{Kind: topology.Placed, Devices: []topology.Device{
		{Driver: "x.example.com", Name: "a", Neighbors: []string{"b"}},
		{Driver: "x.example.com", Name: "b", Coordinates: topology.Coordinates{Col: 1}, Neighbors: []string{"a"}},
		{Driver: "x.example.com", Name: "c", Coordinates: topology.Coordinates{Row: 1, Col: 2}},
	}}
	var b bytes.Buffer
	require.NoError(t, draw.Text(&b, placed, chosen("b")))
	require.Equal(t, "3 devices of x.example.com\n\n[a .]---[b *]\n                [c .]\n\n. free (2)   * chosen (1)\n", b.String())
}

func TestLayoutProperties(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		topo := randomtopology.Any().Draw(t, "topology")
		layout := draw.NewLayout(topo)
		at := map[draw.Point]string{}
		for i, place := range layout.Positions {
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

func requireInside(t require.TestingT, layout draw.Layout, p draw.Point) {
	require.True(t, p.Row >= 0 && p.Row < layout.Rows && p.Col >= 0 && p.Col < layout.Cols,
		"%v in %dx%d", p, layout.Rows, layout.Cols)
}

// requireClear requires that the path of a link touches no device except its two ends.
func requireClear(t require.TestingT, at map[draw.Point]string, link draw.Link) {
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

// TestRingLayoutGoesRound checks that the links of a ring cover each point on the sides of the rectangle once, so that the
// drawing is one closed line.
func TestRingLayoutGoesRound(t *testing.T) {
	for n := 3; n <= 70; n++ {
		layout := draw.NewLayout(randomtopology.NewRing(t, n))
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
