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
	// told: the page says in its table of costs how the search goes. Of two templates with the
	// same expression one is. The page on shapes has a row for each.
	told bool
	// drawn: the page draws it, too.
	drawn       bool
	devices     []topology.Device
	slices      []*resourceapi.ResourceSlice
	draw        topology.Topology
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

// machinePages are about machines that exist, or about what all of them publish.
var machinePages = []string{"gpus.md", "aws.md", "numa.md"}

// shapesPage has one template for each shape, and links to the others.
const shapesPage = "README.md"

// hardwarePages lists the templates of each page.
func hardwarePages(t *testing.T) map[string][]*example {
	result := map[string][]*example{
		shapesPage: {
			fromScenario(t, "four-in-a-row", "ring-12-4"),
			fromScenario(t, "six-around-the-end", "ring-12-6"),
			fromScenario(t, "block-4x4", "block-8x8-16"),
			fromScenario(t, "submesh-8", "board-4x8-8"),
			square(t),
			fromScenario(t, "two-pairs", "pairs-8-4"),
			fromScenario(t, "all-linked", "peers-8-4"),
			fromScenario(t, "four-couples", "couples-8-4"),
		},
	}
	for _, page := range machinePages {
		result[page] = asksOf(t, page)
	}
	return result
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
	e := &example{template: template, slices: published, draw: wiring}
	e.devices = wiring.Devices
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

func square(t *testing.T) *example {
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
