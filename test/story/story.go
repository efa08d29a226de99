// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
)

// Story is one of the user stories.
type Story struct {
	// Manifest is a file in manifests/examples with a claim template and a pod, and Template and Pod are their names. The
	// DeviceClass, in deviceclasses.yaml, has the name of the driver.
	Manifest, Template, Pod string
	// Topology contains the devices of one node.
	Topology topology.Topology
	// DriverFlags are the flags with which celset-topology-driver publishes the devices.
	DriverFlags []string
	// Fragmented are devices. If other pods have them, enough devices are free, but no set of them fits.
	Fragmented []string
	holds      func(topology.Topology, []string) bool
}

// Driver returns the driver of all devices.
func (s *Story) Driver() string { return s.Topology.Devices[0].Driver }

// Holds reports whether devices are a set that the pod asks for. Holds reads the links between the devices, and not
// the expression.
func (s *Story) Holds(devices []string) bool { return s.holds(s.Topology, devices) }

// Ring is the story of four connected devices of a ring of eight. The constraint is
// defined in the claim.
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

// Grid is the story of a 2x2 block of a 4x4 mesh. The constraint is defined in the class.
func Grid() *Story {
	return &Story{
		Manifest: "grid-2x2.yaml", Template: "2x2-device-grid", Pod: "grid",
		Topology:    must(topology.NewMesh(topology.Family{Driver: "mesh.example.com", Prefix: "mla"}, 4, 4)),
		DriverFlags: []string{"--topology=mesh", "--rows=4", "--columns=4", "--driver-name=mesh.example.com", "--device-prefix=mla"},
		// As on a chessboard.
		Fragmented: []string{"mla-1", "mla-3", "mla-4", "mla-6", "mla-9", "mla-11", "mla-12", "mla-14"},
		holds: func(t topology.Topology, devices []string) bool {
			return wiring.IsBlock(t, devices, 2, 2)
		},
	}
}

func must(t topology.Topology, err error) topology.Topology {
	if err != nil {
		panic(err) // the sizes are constants, and a test asks for all of them
	}
	return t
}
