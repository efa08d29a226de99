// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"fmt"
	"regexp"

	"github.com/celset/celset/internal/topology"
)

// The drivers of the scenarios, which are also their device classes and the domains
// of their attributes.
const (
	acceleratorDriver = "mla.example.com"
	gpuDriver         = "gpu.example.com"
	nicDriver         = "nic.example.com"
)

// short is an attribute as it is written in this file: d.row.
var short = regexp.MustCompile(`\b([do])\.(index|row|col|bridge|id|peers|pcieRoot)\b`)

// written completes the attributes of an expression: d.row becomes
// d.attributes['mla.example.com'].row.
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

const (
	// sameBridge: two devices at one bridge.
	sameBridge = `devices.all(d, devices.all(o, d.bridge == o.bridge))`

	// wholePairs: each device has its partner with it.
	wholePairs = `devices.all(d, devices.exists_one(o, d != o && d.bridge == o.bridge))`

	// contiguous: four devices of a chain.
	contiguous = `devices.map(d, d.index).max() - devices.map(d, d.index).min() == 3`

	// contiguousRing12: of a stretch of a ring, all devices but the last one have
	// their successor with them.
	contiguousRing12 = `devices.exists_one(d, !devices.exists(o, o.index == (d.index + 1) % 12))`

	// meshNeighbours is the grid of KEP-5254.
	meshNeighbours = `devices.all(d, devices.filter(o, d != o && (
	d.row == o.row && (d.col == o.col + 1 || d.col == o.col - 1) ||
	d.col == o.col && (d.row == o.row + 1 || d.row == o.row - 1))).size() >= 2)`

	// torusNeighbours is the same with rows and columns that close. It takes the
	// number of both.
	torusNeighbours = `devices.all(d, devices.filter(o, d != o && (
	d.row == o.row && (d.col == (o.col + 1) %% %[1]d || o.col == (d.col + 1) %% %[1]d) ||
	d.col == o.col && (d.row == (o.row + 1) %% %[1]d || o.row == (d.row + 1) %% %[1]d))).size() >= 2)`

	// boundingBox takes the number of rows less one and that of columns less one.
	boundingBox = `devices.map(d, d.row).max() - devices.map(d, d.row).min() == %d &&
	devices.map(d, d.col).max() - devices.map(d, d.col).min() == %d`

	// allLinked: each device is in the list of peers of each other one.
	allLinked = `devices.all(d, devices.all(o, d == o || o.id in d.peers.split(',')))`

	// couples: each device has exactly one of the other driver at its root.
	couples = `devices.all(d, devices.exists_one(o, d.driver != o.driver && d.pcieRoot == o.pcieRoot))`
)

// ofSize is an expression that says the number of devices first, as those of the
// KEP do.
func ofSize(size int, expression string) string {
	return fmt.Sprintf("size(devices) == %d && %s", size, expression)
}

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

// The occupancies that were thought out, as pictures of the meshes and tori. A test
// checks that each is what it is said to be.

// Posts: each square of 2x2 has one of its four devices in use, and each free device
// has two free neighbours all the same.
const (
	posts4x4 = `
		....
		.x.x
		....
		.x.x`
	posts4x4LessLast = `
		....
		.x.x
		....
		.x..`
	posts8x8 = `
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x.x`
	posts8x8LessLast = `
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x.x..`
	// On a torus the last post has squares around it that begin with device 0.
	posts8x8LessOne = `
		........
		.x.x.x.x
		........
		.x.x.x.x
		........
		.x.x...x
		........
		.x.x.x.x`
)

// Cycles: every free device has two free neighbours, but what is closed in itself
// has another size than wanted.
const (
	// 28 and 12.
	ringInRing = `
		........
		.xxxxxx.
		.x....x.
		.x.xx.x.
		.x.xx.x.
		.x....x.
		.xxxxxx.
		........`
	// 28 and 8.
	ringAroundEight = `
		........
		.xxxxxx.
		.xxxxxx.
		.xx...x.
		.xx.x.x.
		.xx...x.
		.xxxxxx.
		........`
	// On a torus: 20 and 4.
	twentyAndFour = `
		......xx
		.xxxx.xx
		.x..x.xx
		.x..x.xx
		.xxxx.xx
		......xx
		xxxxxxxx
		xxxxxxxx`
	// On a torus: 20, 4 and 4.
	twentyFourAndFour = `
		......xx
		.xxxx.xx
		.x..x.xx
		.x..x.xx
		.xxxx.xx
		......xx
		xxxxxx..
		xxxxxx..`
	// On a torus: a row and a column of 8, that have a device in common, and 16.
	crossAndSixteen = `
		........
		.xxxxxxx
		.x.....x
		.x.xxx.x
		.x.x.x.x
		.x.xxx.x
		.x.....x
		.xxxxxxx`
)

// On a torus of 4x4, found by going through all that there are: as many devices as
// can be free without an answer, and as many as can be with but one.
const (
	torus4x4NoCycle = `
		..x.
		x...
		..x.
		.x.x`
	torus4x4OneCycle = `
		...x
		.xx.
		x...
		.x..`
	torus4x4NoneOfEight = `
		.x..
		..x.
		.x..
		..xx`
	torus4x4OneOfEight = `
		x.x.
		.x.x
		....
		....`
)

// Blocks: each block of the wanted size has a device in use, and few devices do
// that.
const (
	boardNoBlock = `
		........
		...x...x
		.x...x..
		........`
	boardLastBlock = `
		.x...x..
		...x...x
		...x....
		........`
	meshNoBlock = `
		........
		........
		........
		...x...x
		........
		........
		........
		...x...x`
	meshLastBlock = `
		........
		........
		........
		...x...x
		........
		........
		........
		...x....`
)
