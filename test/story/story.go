// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
)

// A Story is a user story.
type Story struct {
	// Manifest is the path of a file in manifests/examples with a claim template and a pod. Template and Pod are the names of
	// these objects. The DeviceClass is in deviceclasses.yaml, and has the name of the driver.
	Manifest, Template, Pod string
	// Topology contains the devices of one node.
	Topology topology.Topology
	// DriverFlags are flags that make celset-topology-driver publish the same devices.
	DriverFlags []string
	// Fragmented are devices for an example of fragmentation: if other pods use them, enough devices are free, but no free set
	// fits.
	Fragmented []string
	holds      func(topology.Topology, []string) bool
}

// Driver returns the name of the driver of all devices.
func (s *Story) Driver() string { return s.Topology.Devices[0].Driver }

// Holds reports whether the devices are a set that the pod may get. It checks the links between the devices, and does not use
// the CEL expression.
func (s *Story) Holds(devices []string) bool { return s.holds(s.Topology, devices) }

// Ring returns the story of four connected devices of a ring of eight devices. The claim defines the constraint.
func Ring() *Story {
	return &Story{
		Manifest: "ring-4-connected.yaml", Template: "4-connected-devices", Pod: "ring",
		Topology:    must(topology.NewRing(topology.Family{Driver: "mla.example.com", Prefix: "mla"}, 8)),
		DriverFlags: []string{"--topology=ring", "--devices=8", "--driver-name=mla.example.com"},
		Fragmented:  []string{"mla-1", "mla-5"},
		holds: func(t topology.Topology, devices []string) bool {
			return len(devices) == 4 && wiring.Contiguous(t, devices)
		},
	}
}

// Grid returns the story of a 2x2 block of a 4x4 mesh. The DeviceClass defines the constraint.
func Grid() *Story {
	return &Story{
		Manifest: "grid-2x2.yaml", Template: "2x2-device-grid", Pod: "grid",
		Topology:    must(topology.NewMesh(topology.Family{Driver: "mesh.example.com", Prefix: "mla"}, 4, 4)),
		DriverFlags: []string{"--topology=mesh", "--rows=4", "--columns=4", "--driver-name=mesh.example.com", "--device-prefix=mla"},
		// These devices form the pattern of a chessboard.
		Fragmented: []string{"mla-1", "mla-3", "mla-4", "mla-6", "mla-9", "mla-11", "mla-12", "mla-14"},
		holds: func(t topology.Topology, devices []string) bool {
			return wiring.IsBlock(t, devices, 2, 2)
		},
	}
}

func must(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err) // the sizes are constants, and a test creates all topologies
	}
	return t
}
