// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/draw"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// An example is a template on a page, with a node. docs/hardware/tests has the cases with the expected devices.
type example struct {
	template string
	// inCosts is set if the page has a row for the template in its table of costs. Templates with the same expression share a
	// row, except on the page about shapes.
	inCosts bool
	// drawn is set if the page has a drawing of the example.
	drawn   bool
	devices []topology.Device
	slices  []*resourceapi.ResourceSlice
	draw    topology.Topology
	// inUse are devices in use, so that no set satisfies the claim. It is set if inCosts or drawn is set, and on the page about shapes.
	inUse shape.Set
	wants []want
	// asked is set if TestAsks already compares the example with an exhaustive search.
	asked bool
	// plain is set if the claim has no CEL constraint.
	plain bool
}

// machinePages are the pages about real machines, or about attributes that all these machines publish.
var machinePages = []string{"gpus.md", "aws.md", "numa.md"}

// walkthroughPages contain only claims that need a DeviceAttributes object. test/cmd/kubectl-celset runs the commands of these
// pages and checks the devices.
var walkthroughPages = []string{"tenstorrent.md"}

// shapesPage is the page with one template for each shape, and links to the other pages.
const shapesPage = "README.md"

// hardwarePages returns the examples of each page.
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

// fromScenario returns an example for a template with the devices of the named scenario in package shape. In the last occupancy of
// the scenario, whose devices are in use, no set fits.
func fromScenario(t *testing.T, template, name string) *example {
	all := shape.Scenarios()
	i := slices.IndexFunc(all, func(s shape.Scenario) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	s := all[i]
	e := onTopology(t, template, s.Topology)
	e.inUse = s.Occupancies[len(s.Occupancies)-1].InUse
	for _, r := range s.Requests {
		e.wants = append(e.wants, want{driver: r.Driver, count: r.Count})
	}
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

func square(t *testing.T) *example {
	torus, err := topology.NewTorus(accelerators, 4, 4)
	require.NoError(t, err)
	e := onTopology(t, "square", torus)
	e.wants = []want{{driver: accelerators.Driver, count: 4}}
	e.inUse = shape.Drawn(`
		.x..
		...x
		.x..
		...x`)
	return e
}

// tell returns a drawing of the node with the devices in use, and the text of the pod's event.
func (e *example) tell(t *testing.T, p *hardwarePage) string {
	explanation, err := p.problem(t, e, e.inUse).Node(t.Context(), node)
	require.NoError(t, err)
	require.False(t, explanation.Fits)
	return fmt.Sprintf("```text\n%s\n\nnearest miss: node %s: %s\n```\n", e.picture(t), nodeName, explanation)
}

// costs returns a table with the cost of the search for each template, on a node with the devices in use.
func costs(t *testing.T, p *hardwarePage, examples []*example) string {
	var text strings.Builder
	text.WriteString("| claim | free | sets of the wanted size | steps, at most | sets evaluated |\n|---|---|---|---|---|\n")
	for _, e := range examples {
		stats := e.work(t, p)
		fmt.Fprintf(&text, "| `%s` | %d of %d | %s | %d | %d |\n",
			e.template, e.candidates(e.inUse), e.candidates(0), grouped(e.sets()), roundedUp(stats.Steps), stats.Evaluations)
	}
	return text.String()
}

// work returns the statistics of a search with empty caches that finds no set.
func (e *example) work(t *testing.T, p *hardwarePage) allocator.Stats {
	problem := p.problem(t, e, e.inUse)
	a, err := problem.NewAllocator(t.Context())
	require.NoError(t, err)
	results, err := a.Allocate(t.Context(), node, problem.Claims)
	require.NoError(t, err)
	require.Nil(t, results, e.template)
	return a.Stats()
}

// candidates returns the number of free devices that some request may get.
func (e *example) candidates(inUse shape.Set) int {
	free := 0
	for i, d := range e.devices {
		if !inUse.Has(i) && slices.ContainsFunc(e.wants, func(w want) bool { return w.may(d) }) {
			free++
		}
	}
	return free
}

// sets returns the number of sets of the requested size. It multiplies the choices of each request, because no device matches
// two requests.
func (e *example) sets() *big.Int {
	all := big.NewInt(1)
	for _, w := range e.wants {
		free := int64(0)
		for i, d := range e.devices {
			if !e.inUse.Has(i) && w.may(d) {
				free++
			}
		}
		all.Mul(all, new(big.Int).Binomial(free, int64(w.count)))
	}
	return all
}

func (e *example) picture(t *testing.T) string {
	marks := map[string]draw.Mark{}
	for i := range e.inUse.All() {
		marks[e.devices[i].Name] = draw.Mark{State: draw.Taken}
	}
	var text strings.Builder
	require.NoError(t, draw.Text(&text, e.draw, marks))
	return strings.TrimSpace(text.String())
}

// grouped inserts commas: 1820 becomes 1,820. Numbers of more than nine digits become four digits with an exponent, such as
// 4.885e14.
func grouped(n *big.Int) string {
	digits := n.String()
	if len(digits) > 9 {
		return strings.NewReplacer("e+0", "e", "e+", "e").Replace(new(big.Float).SetInt(n).Text('e', 3))
	}
	return thousands(digits)
}

func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// roundedUp rounds up to 10, 20, 50, 100 and so on, so that small changes of the search don't change the page.
func roundedUp(steps int64) int64 {
	for size := int64(10); ; size *= 10 {
		i := slices.IndexFunc([]int64{1, 2, 5}, func(times int64) bool { return steps <= times*size })
		if i >= 0 {
			return []int64{1, 2, 5}[i] * size
		}
	}
}
