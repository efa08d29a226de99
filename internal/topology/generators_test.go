// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/topology"
)

var (
	mla = topology.Family{Driver: "mla.example.com", Prefix: "mla"}
	gpu = topology.Family{Driver: "gpu.example.com", Prefix: "gpu"}
	nic = topology.Family{Driver: "nic.example.com", Prefix: "nic"}
)

func ring(t require.TestingT, n int) topology.Topology {
	topo, err := topology.NewRing(mla, n)
	require.NoError(t, err)
	return topo
}

func mesh(t require.TestingT, rows, cols int) topology.Topology {
	topo, err := topology.NewMesh(mla, rows, cols)
	require.NoError(t, err)
	return topo
}

func torus(t require.TestingT, rows, cols int) topology.Topology {
	topo, err := topology.NewTorus(mla, rows, cols)
	require.NoError(t, err)
	return topo
}

func bridgePairs(t require.TestingT, n int) topology.Topology {
	topo, err := topology.NewBridgePairs(gpu, n)
	require.NoError(t, err)
	return topo
}

func couples(t require.TestingT, n int) topology.Topology {
	topo, err := topology.NewCouples(gpu, nic, n)
	require.NoError(t, err)
	return topo
}

func cubeMesh(t require.TestingT, form topology.PeerForm) topology.Topology {
	topo, err := topology.NewHybridCubeMesh(mla, form)
	require.NoError(t, err)
	return topo
}

// anyTopology draws a topology of any kind and of moderate size.
func anyTopology() *rapid.Generator[topology.Topology] {
	return rapid.OneOf(anyRing(), anyGrid(),
		rapid.Custom(func(t *rapid.T) topology.Topology {
			return bridgePairs(t, 2*rapid.IntRange(1, 80).Draw(t, "pairs"))
		}),
		rapid.Custom(func(t *rapid.T) topology.Topology {
			return couples(t, rapid.IntRange(1, 150).Draw(t, "couples"))
		}),
		rapid.Custom(func(t *rapid.T) topology.Topology {
			forms := []topology.PeerForm{topology.PeersAsString, topology.PeersAsStringAndList}
			return cubeMesh(t, rapid.SampledFrom(forms).Draw(t, "form"))
		}),
	)
}

func anyRing() *rapid.Generator[topology.Topology] {
	return rapid.Custom(func(t *rapid.T) topology.Topology {
		return ring(t, rapid.IntRange(3, 150).Draw(t, "n"))
	})
}

// anyGrid draws a mesh or a torus.
func anyGrid() *rapid.Generator[topology.Topology] {
	return rapid.Custom(func(t *rapid.T) topology.Topology {
		if rapid.Bool().Draw(t, "torus") {
			return torus(t, rapid.IntRange(2, 12).Draw(t, "rows"), rapid.IntRange(2, 12).Draw(t, "cols"))
		}
		return mesh(t, rapid.IntRange(1, 12).Draw(t, "rows"), rapid.IntRange(1, 12).Draw(t, "cols"))
	})
}

// anyDevice draws one device of a topology.
func anyDevice(t *rapid.T, topo topology.Topology, label string) topology.Device {
	return rapid.SampledFrom(topo.Devices).Draw(t, label)
}

// anySet draws a set of at least one device, by name and in any order. Devices
// near each other come up more often than a uniform choice would have it, so
// that sets with a shape are not rare.
func anySet(t *rapid.T, topo topology.Topology, most int) []string {
	names := []string{anyDevice(t, topo, "first").Name}
	for range rapid.IntRange(0, most-1).Draw(t, "more") {
		from, _ := topo.Device(rapid.SampledFrom(names).Draw(t, "from"))
		next := anyDevice(t, topo, "device").Name
		if len(from.Neighbors) > 0 && rapid.IntRange(0, 9).Draw(t, "near") > 0 {
			next = rapid.SampledFrom(from.Neighbors).Draw(t, "neighbor")
		}
		names = append(names, next)
	}
	return rapid.Permutation(distinct(names)).Draw(t, "set")
}

func distinct(names []string) []string {
	var result []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			result = append(result, name)
		}
	}
	return result
}
