// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
)

// The drivers of the scenarios. A driver's name is also the name of its device class and the domain of its attributes.
const (
	acceleratorDriver = "mla.example.com"
	gpuDriver         = "gpu.example.com"
	nicDriver         = "nic.example.com"
)

// short matches an abbreviated attribute in an expression of the table, such as d.row.
var short = regexp.MustCompile(`\b([do])\.(index|row|col|bridge|id|peers|pcieRoot)\b`)

// written expands abbreviated attributes: d.row becomes d.attributes['mla.example.com'].row.
func written(expression string) string {
	return short.ReplaceAllStringFunc(expression, func(match string) string {
		variable, name := match[:1], match[2:]
		domain := acceleratorDriver
		if name == "pcieRoot" {
			domain = "resource.kubernetes.io"
		}
		return fmt.Sprintf("%s.attributes['%s'].%s", variable, domain, name)
	})
}

//go:embed scenarios.yaml
var table []byte

// Scenarios returns a scenario for each row of the table. It panics if the table has a mistake, because every test would fail
// anyway.
func Scenarios() []Scenario {
	var rows []struct {
		Name, Shape, Expression    string
		Node                       map[string][]int
		Devices                    int
		Adversarial, Unsatisfiable string
	}
	if err := yaml.UnmarshalStrict(table, &rows); err != nil {
		panic(err)
	}
	var all []Scenario
	for _, row := range rows {
		s := Scenario{Name: row.Name, Expression: written(row.Expression), Requests: []Request{{Name: "mla", Driver: acceleratorDriver, Count: row.Devices}}}
		for kind, sizes := range row.Node {
			t, err := made(kind, slices.Concat(sizes, []int{0, 0}))
			if err != nil {
				panic(err)
			}
			s.Topology = t
		}
		if row.Shape == "couples" {
			s.Requests = []Request{{Name: "gpu", Driver: gpuDriver, Count: row.Devices / 2}, {Name: "nic", Driver: nicDriver, Count: row.Devices / 2}}
		}
		s.Occupancies = occupancies(len(s.Topology.Devices), row.Adversarial, row.Unsatisfiable)
		s.holds, s.search = checkOf(row.Shape, s.Topology, row.Devices)
		all = append(all, s)
	}
	return all
}

func made(kind string, sizes []int) (topology.Topology, error) {
	accelerators := topology.Family{Driver: acceleratorDriver, Prefix: "mla"}
	switch kind {
	case "bridges":
		return topology.NewBridgePairs(accelerators, sizes[0])
	case "ring":
		return topology.NewRing(accelerators, sizes[0])
	case "mesh":
		return topology.NewMesh(accelerators, sizes[0], sizes[1])
	case "torus":
		return topology.NewTorus(accelerators, sizes[0], sizes[1])
	case "peers":
		return topology.NewHybridCubeMesh(accelerators, topology.PeersAsString)
	case "couples":
		return topology.NewCouples(topology.Family{Driver: gpuDriver, Prefix: "gpu"}, topology.Family{Driver: nicDriver, Prefix: "nic"}, sizes[0])
	}
	return topology.Topology{}, fmt.Errorf("there are no nodes %s", kind)
}

// checkOf returns two functions: holds reports whether a set has the shape, and search finds a set with the shape.
func checkOf(shape string, t topology.Topology, count int) (holds func(topology.Topology, []string) bool, search func(Set) (Set, int)) {
	switch shape {
	case "pairs":
		return wiring.WholePairs, newPairSearch(t, count/2).first
	case "couples":
		return wiring.WholeCouples, newPairSearch(t, count/2).first
	case "stretch":
		return contiguousWithoutWrap, stretchSearch{ring: len(t.Devices), size: count}.first
	case "arc":
		return wiring.Contiguous, stretchSearch{ring: len(t.Devices), size: count, wraps: true}.first
	case "neighbours":
		return everyHasTwoNeighbours, newNeighbourSearch(t, count).first
	case "clique":
		return wiring.IsClique, newCliqueSearch(t, count).first
	}
	var rows, cols int
	if _, err := fmt.Sscanf(shape, "block%dx%d", &rows, &cols); err != nil {
		panic(fmt.Sprintf("there is no shape %s", shape))
	}
	return func(t topology.Topology, names []string) bool {
		return wiring.IsBlock(t, names, rows, cols) || wiring.IsBlock(t, names, cols, rows)
	}, newBlockSearch(t.Rows, t.Cols, rows, cols, rows != cols).first
}
