// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// Kind says how the devices of a topology are wired.
type Kind string

// The kinds of topologies, each made by the function of the same name with New
// in front.
const (
	Ring           Kind = "ring"
	Mesh           Kind = "mesh"
	Torus          Kind = "torus"
	BridgePairs    Kind = "bridge-pairs"
	Couples        Kind = "couples"
	HybridCubeMesh Kind = "hybrid-cube-mesh"
)

// Kinds that are not wired in one way.
const (
	// Placed is the kind of devices that were not generated here: they are drawn at their
	// coordinates, with links to those of their Neighbors that are beside them.
	Placed Kind = "placed"
	// Machine is the kind of all devices of a machine, of any number of drivers. Package
	// machine has models of such. They are drawn below the NUMA nodes and PCIe roots that
	// their attributes tell, see [Locate]; devices of a driver that has links, as if they
	// were Placed.
	Machine Kind = "machine"
)

// Topology is the devices of one node and how they are linked. It does not know
// the node: the same topology can be published for any number of them.
type Topology struct {
	Kind Kind
	// Title is what stands above a drawing instead of the kind. Then a grid that is wider than a page is drawn without names.
	Title string
	// Rows and Cols are the shape of a Mesh or a Torus, 0 for other kinds.
	Rows, Cols int
	// Devices are in the order in which they are published. Their names are
	// unique, also across drivers.
	Devices []Device
}

// Device is one device of a topology.
type Device struct {
	Driver string
	// Name is a DNS label, the family's prefix and a number: "mla-0".
	Name string
	// Attributes are published with the device. Those of the driver's own
	// domain have no domain in their name.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	// Capacity is published with the device, too.
	Capacity map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
	// AllowMultipleAllocations lets several claims have a part of the device each.
	AllowMultipleAllocations bool
	// Coordinates place the device in its topology.
	Coordinates Coordinates
	// Neighbors are the names of the directly linked devices, without
	// repetition and in the order of Topology.Devices. Links have no direction:
	// a neighbour's Neighbors name this device.
	Neighbors []string
}

// Coordinates count from 0. What they mean depends on the kind:
//
//	Mesh, Torus     row and column
//	Ring            0 and the index in the ring
//	BridgePairs     the pair and the side of the bridge
//	Couples         the PCIe root and 0 for the GPU, 1 for the NIC
//	HybridCubeMesh  the quad and the corner
//	Placed          the place in a drawing
//	Machine         the same, of devices whose driver has links; 0 for others
type Coordinates struct {
	Row, Col int
}

// Edge is a link between two devices, A being the one that comes first in
// Topology.Devices.
type Edge struct {
	A, B string
}

// Device finds a device by its name.
func (t Topology) Device(name string) (Device, bool) {
	i := slices.IndexFunc(t.Devices, func(d Device) bool { return d.Name == name })
	if i < 0 {
		return Device{}, false
	}
	return t.Devices[i], true
}

// Select returns the named devices in the order of the names. Select returns an error for an empty list, for an unknown
// device, and for a device that is named twice.
func (t Topology) Select(names []string) ([]Device, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no device named", t)
	}
	order := t.order()
	seen := make(map[string]bool, len(names))
	devices := make([]Device, 0, len(names))
	for _, name := range names {
		i, known := order[name]
		if !known {
			return nil, fmt.Errorf("%s: has no device %q", t, name)
		}
		if seen[name] {
			return nil, fmt.Errorf("%s: device %q is named twice", t, name)
		}
		seen[name] = true
		devices = append(devices, t.Devices[i])
	}
	return devices, nil
}

// Drivers lists the drivers of the devices, each once, in the order in which
// they first appear.
func (t Topology) Drivers() []string {
	var drivers []string
	for _, d := range t.Devices {
		if !slices.Contains(drivers, d.Driver) {
			drivers = append(drivers, d.Driver)
		}
	}
	return drivers
}

// Edges lists every link once, ordered by A and then by B.
func (t Topology) Edges() []Edge {
	order := t.order()
	var edges []Edge
	for i, d := range t.Devices {
		for _, neighbor := range d.Neighbors {
			if j, known := order[neighbor]; known && i < j {
				edges = append(edges, Edge{A: d.Name, B: neighbor})
			}
		}
	}
	return edges
}

// order maps the names of devices to their index in Devices.
func (t Topology) order() map[string]int {
	order := make(map[string]int, len(t.Devices))
	for i, d := range t.Devices {
		order[d.Name] = i
	}
	return order
}

// String describes the topology in a few words: "ring of 8 mla.example.com".
func (t Topology) String() string {
	if t.Title != "" {
		return t.Title
	}
	return t.shape() + " " + strings.Join(t.Drivers(), " and ")
}

func (t Topology) shape() string {
	n := len(t.Devices)
	switch t.Kind {
	case Mesh, Torus:
		return fmt.Sprintf("%dx%d %s of", t.Rows, t.Cols, t.Kind)
	case BridgePairs:
		return fmt.Sprintf("%d bridged pairs of", n/2)
	case Couples:
		return fmt.Sprintf("%d couples of", n/2)
	case HybridCubeMesh:
		return fmt.Sprintf("hybrid cube mesh of %d", n)
	case Placed, Machine:
		return fmt.Sprintf("%d devices of", n)
	default:
		return fmt.Sprintf("%s of %d", t.Kind, n)
	}
}
