// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/celset/celset/internal/topology"
)

// A Wiring describes the topology to generate. The zero value of a field means the default of the kind, except for Kind and the
// sizes.
type Wiring struct {
	Kind topology.Kind
	// Devices is the number of devices. For the kind couples, half of them are GPUs and half are NICs. Meshes and tori use Rows
	// and Columns instead, and hybrid cube meshes always have eight devices.
	Devices int
	// Rows and Columns are the sizes of a mesh or a torus.
	Rows, Columns int
	// Driver is the name of the driver. For the kind couples, it is the driver of the GPUs.
	Driver string
	// NICDriver is the name of the NICs' driver for the kind couples.
	NICDriver string
	// Prefix begins the names of all devices except NICs. The default is the first label of the driver's name.
	Prefix string
	// PeerList makes the devices of a hybrid cube mesh also publish their peers as a list, which requires a cluster with
	// DRAListTypeAttributes.
	PeerList bool
}

// Kinds returns the kinds of topologies that can be generated.
func Kinds() []topology.Kind {
	return []topology.Kind{
		topology.Ring, topology.Mesh, topology.Torus, topology.BridgePairs, topology.Couples, topology.HybridCubeMesh,
	}
}

// defaultDrivers maps a kind to its default driver, if that is not defaultDriver. The device classes and examples in
// manifests/examples use these drivers.
var defaultDrivers = map[topology.Kind]string{
	topology.Mesh:    "mesh.example.com",
	topology.Couples: "gpu.example.com",
}

const (
	defaultDriver    = "mla.example.com"
	defaultNICDriver = "nic.example.com"
)

// Topology generates the devices.
func (w Wiring) Topology() (topology.Topology, error) {
	devices := family(cmp.Or(w.Driver, defaultDrivers[w.Kind], defaultDriver))
	devices.Prefix = cmp.Or(w.Prefix, devices.Prefix)
	switch w.Kind {
	case topology.Ring:
		return topology.NewRing(devices, w.Devices)
	case topology.Mesh:
		return topology.NewMesh(devices, w.Rows, w.Columns)
	case topology.Torus:
		return topology.NewTorus(devices, w.Rows, w.Columns)
	case topology.BridgePairs:
		return topology.NewBridgePairs(devices, w.Devices)
	case topology.Couples:
		return w.couples(devices)
	case topology.HybridCubeMesh:
		form := topology.PeersAsString
		if w.PeerList {
			form = topology.PeersAsStringAndList
		}
		return topology.NewHybridCubeMesh(devices, form)
	default:
		return topology.Topology{}, fmt.Errorf("topology %q: must be one of %q", w.Kind, Kinds())
	}
}

func (w Wiring) couples(gpus topology.Family) (topology.Topology, error) {
	if w.Devices%2 != 0 {
		return topology.Topology{}, fmt.Errorf("couples: devices: must be an even number, is %d", w.Devices)
	}
	return topology.NewCouples(gpus, family(cmp.Or(w.NICDriver, defaultNICDriver)), w.Devices/2)
}

// family returns the driver's name, and a prefix for its devices from the name. For example, the devices of mla.example.com are
// mla-0, mla-1 and so on.
func family(driver string) topology.Family {
	prefix, _, _ := strings.Cut(driver, ".")
	return topology.Family{Driver: driver, Prefix: prefix}
}
