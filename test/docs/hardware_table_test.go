// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// example is a template of a page, and what it is tried on.
type example struct {
	template string
	// told: the page says how the search goes. Of two templates with the same
	// expression one is.
	told    bool
	title   string
	devices []topology.Device
	slices  []*resourceapi.ResourceSlice
	// draw is nil if there is no picture of the hardware.
	draw        *topology.Topology
	occupancies []shape.Occupancy
	wants       []want
	// asked: it is compared with brute force in TestAsks.
	asked bool
	// plain: its claim has no constraint of celset.
	plain bool
	holds func(names []string) bool
	// fits tells whether an occupancy leaves an answer, and want, if not nil, which.
	fits func(shape.Occupancy) bool
	want func(shape.Occupancy) []string
}

func (e *example) index(name string) int {
	return slices.IndexFunc(e.devices, func(d topology.Device) bool { return d.Name == name })
}

// hardwarePages lists the templates of each page.
func hardwarePages(t *testing.T) map[string][]*example {
	return map[string][]*example{
		"aws-trn1.md": asksOf(t, "aws-trn1.md"),
		"aws-p4d.md":  asksOf(t, "aws-p4d.md"),
		"gb200.md":    asksOf(t, "gb200.md"),
		"hgx-h100.md": asksOf(t, "hgx-h100.md"),
		"mi300x.md":   asksOf(t, "mi300x.md"),
		"cpus.md":     asksOf(t, "cpus.md"),
		"gaudi.md":    asksOf(t, "gaudi.md"),
		"ring.md": {
			fromScenario(t, "four-in-a-row", "ring-12-4").described(),
			fromScenario(t, "four-in-a-row-by-class", "ring-12-4"),
			fromScenario(t, "six-around-the-end", "ring-12-6").described(),
		},
		"mesh.md": {
			fromScenario(t, "grid-2x2", "grid-8x8-4").described(),
			fromScenario(t, "grid-2x2-by-class", "grid-8x8-4"),
			block2x4(t).described(),
			fromScenario(t, "block-4x4", "block-8x8-16").described(),
		},
		"torus.md": {
			fromScenario(t, "two-neighbours", "torus-4x4-4").described(),
			fromScenario(t, "two-neighbours-by-class", "torus-4x4-4"),
			block2x2(t).described(),
		},
		"board.md": {
			fromScenario(t, "submesh-8", "board-4x8-8").described(),
			fromScenario(t, "submesh-8-by-class", "board-4x8-8"),
		},
		"nvlink-pairs.md": {
			fromScenario(t, "one-pair", "pairs-8-2").described(),
			fromScenario(t, "two-pairs", "pairs-8-4").described(),
			fromScenario(t, "two-pairs-by-class", "pairs-8-4"),
		},
		"hybrid-cube-mesh.md": {
			fromScenario(t, "all-linked", "peers-8-4").described(),
			fromScenario(t, "all-linked-by-class", "peers-8-4"),
			peerLists(t),
		},
		"gpu-nic.md": {
			fromScenario(t, "four-couples", "couples-8-4").described(),
			fromScenario(t, "four-couples-by-class", "couples-8-4"),
		},
		"numa.md": asksOf(t, "numa.md"),
	}
}

// described has the page say what there is, what it costs and what happens if it does
// not fit.
func (e *example) described() *example {
	e.told = true
	return e
}

// fromScenario tries a template with the devices, the occupancies and the answers of a
// scenario of package shape.
func fromScenario(t *testing.T, template, name string) *example {
	all := shape.Scenarios()
	i := slices.IndexFunc(all, func(s shape.Scenario) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	s := all[i]
	e := onTopology(t, template, s.Topology)
	e.occupancies, e.holds = s.Occupancies, s.Holds
	for _, r := range s.Requests {
		e.wants = append(e.wants, want{driver: r.Driver, count: r.Count})
	}
	answer := func(o shape.Occupancy) shape.Set {
		set, _ := s.HandWritten(s.All() &^ o.InUse)
		return set
	}
	e.fits = func(o shape.Occupancy) bool { return answer(o) != 0 }
	e.want = func(o shape.Occupancy) []string { return s.Names(answer(o)) }
	return e
}

func onTopology(t *testing.T, template string, wiring topology.Topology) *example {
	published, err := wiring.ResourceSlices(nodeName)
	require.NoError(t, err)
	e := &example{template: template, title: wiring.String(), slices: published, draw: &wiring}
	for _, d := range wiring.Devices {
		e.devices = append(e.devices, d)
	}
	return e
}

var accelerators = topology.Family{Driver: "mla.example.com", Prefix: "mla"}

// custom says itself what it wants: count devices, and an answer with all occupancies but
// the last.
func (e *example) custom(count int, holds func([]string) bool, pictures ...string) *example {
	e.wants = []want{{driver: e.devices[0].Driver, count: count}}
	e.holds = holds
	e.occupancies = []shape.Occupancy{{Name: shape.Empty}}
	for i, picture := range pictures {
		e.occupancies = append(e.occupancies, shape.Occupancy{Name: fmt.Sprintf("picture %d", i), InUse: shape.Drawn(picture)})
	}
	e.occupancies[len(e.occupancies)-1].Name = shape.Unsatisfiable
	e.fits = func(o shape.Occupancy) bool { return o.Name != shape.Unsatisfiable }
	return e
}

func block2x4(t *testing.T) *example {
	wiring, err := topology.NewMesh(accelerators, 8, 8)
	require.NoError(t, err)
	return onTopology(t, "block-2x4", wiring).custom(8, func(names []string) bool {
		return wiring.IsBlock(names, 2, 4) || wiring.IsBlock(names, 4, 2)
	}, `
		.x...x..
		...x...x
		.x...x..
		...x...x
		.x...x..
		...x...x
		.x......
		...x....`, `
		.x...x..
		...x...x
		.x...x..
		...x...x
		.x...x..
		...x...x
		.x...x..
		...x...x`)
}

func block2x2(t *testing.T) *example {
	wiring, err := topology.NewTorus(accelerators, 4, 4)
	require.NoError(t, err)
	return onTopology(t, "square", wiring).custom(4, func(names []string) bool { return wiring.IsBlock(names, 2, 2) }, `
		..x.
		x.x.
		.xxx
		....`, `
		.x..
		...x
		.x..
		...x`)
}

func peerLists(t *testing.T) *example {
	wiring, err := topology.NewHybridCubeMesh(accelerators, topology.PeersAsStringAndList)
	require.NoError(t, err)
	return onTopology(t, "all-linked-by-list", wiring).custom(4, wiring.IsClique, "...x ....", "...x ...x")
}
