// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package randomtopology generates topologies for tests.
//
//	rapid.Check(t, func(t *rapid.T) {
//		topo := randomtopology.Any().Draw(t, "topology")
//		...
//	})
package randomtopology

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/topology"
)

// The families of devices that the functions below use.
var (
	MLA = topology.Family{Driver: "mla.example.com", Prefix: "mla"}
	GPU = topology.Family{Driver: "gpu.example.com", Prefix: "gpu"}
	NIC = topology.Family{Driver: "nic.example.com", Prefix: "nic"}
)

// NewRing returns a ring of n devices of the family MLA. Like the functions below, it fails the test if there is an error.
func NewRing(t require.TestingT, n int) topology.Topology {
	topo, err := topology.NewRing(MLA, n)
	require.NoError(t, err)
	return topo
}

// NewMesh returns a mesh of devices of the family MLA.
func NewMesh(t require.TestingT, rows, cols int) topology.Topology {
	topo, err := topology.NewMesh(MLA, rows, cols)
	require.NoError(t, err)
	return topo
}

// NewTorus returns a torus of devices of the family MLA.
func NewTorus(t require.TestingT, rows, cols int) topology.Topology {
	topo, err := topology.NewTorus(MLA, rows, cols)
	require.NoError(t, err)
	return topo
}

// NewBridgePairs returns n devices of the family GPU, in pairs.
func NewBridgePairs(t require.TestingT, n int) topology.Topology {
	topo, err := topology.NewBridgePairs(GPU, n)
	require.NoError(t, err)
	return topo
}

// NewCouples returns n couples of the families GPU and NIC.
func NewCouples(t require.TestingT, n int) topology.Topology {
	topo, err := topology.NewCouples(GPU, NIC, n)
	require.NoError(t, err)
	return topo
}

// NewCubeMesh returns a hybrid cube mesh of devices of the family MLA.
func NewCubeMesh(t require.TestingT, form topology.PeerForm) topology.Topology {
	topo, err := topology.NewHybridCubeMesh(MLA, form)
	require.NoError(t, err)
	return topo
}

// Any generates a topology of any kind and of moderate size.
func Any() *rapid.Generator[topology.Topology] {
	return rapid.OneOf(Rings(), Grids(),
		rapid.Custom(func(t *rapid.T) topology.Topology {
			return NewBridgePairs(t, 2*rapid.IntRange(1, 80).Draw(t, "pairs"))
		}),
		rapid.Custom(func(t *rapid.T) topology.Topology {
			return NewCouples(t, rapid.IntRange(1, 150).Draw(t, "couples"))
		}),
		rapid.Custom(func(t *rapid.T) topology.Topology {
			forms := []topology.PeerForm{topology.PeersAsString, topology.PeersAsStringAndList}
			return NewCubeMesh(t, rapid.SampledFrom(forms).Draw(t, "form"))
		}),
	)
}

// Rings generates rings.
func Rings() *rapid.Generator[topology.Topology] {
	return rapid.Custom(func(t *rapid.T) topology.Topology {
		return NewRing(t, rapid.IntRange(3, 150).Draw(t, "n"))
	})
}

// Grids generates meshes and toruses.
func Grids() *rapid.Generator[topology.Topology] {
	return rapid.Custom(func(t *rapid.T) topology.Topology {
		if rapid.Bool().Draw(t, "torus") {
			return NewTorus(t, rapid.IntRange(2, 12).Draw(t, "rows"), rapid.IntRange(2, 12).Draw(t, "cols"))
		}
		return NewMesh(t, rapid.IntRange(1, 12).Draw(t, "rows"), rapid.IntRange(1, 12).Draw(t, "cols"))
	})
}
