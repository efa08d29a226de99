// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

var accelerators = topology.Family{Driver: acceleratorDriver, Prefix: "mla"}

// Scenarios is the table. What differs in size or count is a scenario of its own.
func Scenarios() []Scenario {
	var all []Scenario
	for _, part := range [][]Scenario{
		pairScenarios(), ringScenarios(), gridScenarios(), torusScenarios(), blockScenarios(), otherScenarios(),
	} {
		all = append(all, part...)
	}
	for i := range all {
		all[i].Expression = written(all[i].Expression)
	}
	return all
}

// made unwraps a topology whose parameters are constants of this package: an error
// is a mistake in the table, which every test would meet.
func made(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err)
	}
	return t
}

// wanted is a claim for count devices of the one driver that most scenarios have.
func wanted(count int) []Request {
	return []Request{{Name: "mla", Driver: acceleratorDriver, Count: count}}
}

func pairScenarios() []Scenario {
	t := made(topology.NewBridgePairs(accelerators, 8))
	return []Scenario{
		{
			Name: "pairs-8-2", Topology: t, Requests: wanted(2), Expression: sameBridge,
			Occupancies: occupancies(8, "x. x. x. ..", "x. .x x. .x"),
			holds:       topology.Topology.WholePairs, search: newPairSearch(t, 1).first,
		},
		{
			Name: "pairs-8-4", Topology: t, Requests: wanted(4), Expression: wholePairs,
			Occupancies: occupancies(8, "x. .x .. ..", "x. .x .. x."),
			holds:       topology.Topology.WholePairs, search: newPairSearch(t, 2).first,
		},
	}
}

func ringScenarios() []Scenario {
	t := made(topology.NewRing(accelerators, 12))
	return []Scenario{
		{
			Name: "ring-12-4", Topology: t, Requests: wanted(4), Expression: contiguous,
			Occupancies: occupancies(12, "...x ...x ....", "...x ...x ...x"),
			holds:       contiguousWithoutWrap, search: stretchSearch{ring: 12, size: 4}.first,
		},
		{
			Name: "ring-12-6", Topology: t, Requests: wanted(6), Expression: contiguousRing12,
			Occupancies: occupancies(12, "...x....x...", "x.....x....."),
			holds:       topology.Topology.Contiguous, search: stretchSearch{ring: 12, size: 6, wraps: true}.first,
		},
	}
}

func gridScenarios() []Scenario {
	grid := func(size, count int, adversarial, unsatisfiable string) Scenario {
		t := made(topology.NewMesh(accelerators, size, size))
		return Scenario{
			Name:     fmt.Sprintf("grid-%dx%d-%d", size, size, count),
			Topology: t, Requests: wanted(count), Expression: ofSize(count, meshNeighbours),
			Occupancies: occupancies(size*size, adversarial, unsatisfiable),
			holds:       everyHasTwoNeighbours, search: newNeighbourSearch(t, count).first,
		}
	}
	return []Scenario{
		grid(4, 4, posts4x4LessLast, posts4x4),
		grid(8, 4, posts8x8LessLast, posts8x8),
		grid(8, 8, ringAroundEight, ringInRing),
	}
}

func torusScenarios() []Scenario {
	torus := func(size, count int, adversarial, unsatisfiable string) Scenario {
		t := made(topology.NewTorus(accelerators, size, size))
		return Scenario{
			Name:     fmt.Sprintf("torus-%dx%d-%d", size, size, count),
			Topology: t, Requests: wanted(count), Expression: ofSize(count, fmt.Sprintf(torusNeighbours, size)),
			Occupancies: occupancies(size*size, adversarial, unsatisfiable),
			holds:       everyHasTwoNeighbours, search: newNeighbourSearch(t, count).first,
		}
	}
	return []Scenario{
		torus(4, 4, torus4x4OneCycle, torus4x4NoCycle),
		torus(4, 8, torus4x4OneOfEight, torus4x4NoneOfEight),
		torus(4, 16, "", ""),
		torus(8, 4, posts8x8LessOne, posts8x8),
		torus(8, 8, twentyFourAndFour, twentyAndFour),
		torus(8, 16, crossAndSixteen, twentyAndFour),
	}
}

func blockScenarios() []Scenario {
	board := made(topology.NewMesh(accelerators, 4, 8))
	mesh := made(topology.NewMesh(accelerators, 8, 8))
	return []Scenario{
		{
			Name: "board-4x8-8", Topology: board, Requests: wanted(8),
			Expression:  fmt.Sprintf(boundingBox+" ||\n"+boundingBox, 1, 3, 3, 1),
			Occupancies: occupancies(32, boardLastBlock, boardNoBlock),
			holds: func(t topology.Topology, names []string) bool {
				return t.IsBlock(names, 2, 4) || t.IsBlock(names, 4, 2)
			},
			search: newBlockSearch(4, 8, 2, 4, true).first,
		},
		{
			Name: "block-8x8-16", Topology: mesh, Requests: wanted(16),
			Expression:  fmt.Sprintf(boundingBox, 3, 3),
			Occupancies: occupancies(64, meshLastBlock, meshNoBlock),
			holds:       func(t topology.Topology, names []string) bool { return t.IsBlock(names, 4, 4) },
			search:      newBlockSearch(8, 8, 4, 4, false).first,
		},
	}
}

func otherScenarios() []Scenario {
	peers := made(topology.NewHybridCubeMesh(accelerators, topology.PeersAsString))
	roots := made(topology.NewCouples(
		topology.Family{Driver: gpuDriver, Prefix: "gpu"}, topology.Family{Driver: nicDriver, Prefix: "nic"}, 8))
	return []Scenario{
		{
			Name: "peers-8-4", Topology: peers, Requests: wanted(4), Expression: allLinked,
			Occupancies: occupancies(8, "...x ....", "...x ...x"),
			holds:       topology.Topology.IsClique, search: newCliqueSearch(peers, 4).first,
		},
		{
			Name: "couples-8-4", Topology: roots, Expression: couples,
			Requests: []Request{
				{Name: "gpu", Driver: gpuDriver, Count: 4},
				{Name: "nic", Driver: nicDriver, Count: 4},
			},
			Occupancies: occupancies(16, "........ xxxx....", "....x... xxxx...."),
			holds:       topology.Topology.WholeCouples, search: newPairSearch(roots, 4).first,
		},
	}
}
