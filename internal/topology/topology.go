// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// Kind is the kind of wiring of a topology.
type Kind string

// The kinds of topologies. The constructor of a kind has its name after "New".
const (
	Ring           Kind = "ring"
	Mesh           Kind = "mesh"
	Torus          Kind = "torus"
	BridgePairs    Kind = "bridge-pairs"
	Couples        Kind = "couples"
	HybridCubeMesh Kind = "hybrid-cube-mesh"
)

// Kinds without a fixed wiring.
const (
	// Placed is the kind of a topology whose devices this package did not generate. A drawing has them at their coordinates,
	// with links to adjacent Neighbors.
	Placed Kind = "placed"
	// Machine is the kind of a topology with all devices of a machine, which may belong to several drivers. Package machine
	// models such machines. A drawing groups the devices by the NUMA nodes and PCIe roots in their attributes, see [Locate]. If
	// the devices of a driver have links, they are drawn like Placed devices.
	Machine Kind = "machine"
)

// Topology holds the devices of one node and their links. It is independent of the node, so it can be published for many nodes.
type Topology struct {
	Kind Kind
	// Title replaces the kind above a drawing. With a Title, a grid wider than a page is drawn without names.
	Title string
	// Rows and Cols are the size of a Mesh or Torus, and 0 for other kinds.
	Rows, Cols int
	// Devices is in the order of publication. Names are unique, also across drivers.
	Devices []Device
}

// Device is one device of a topology.
type Device struct {
	Driver string
	// Name is a DNS label, made of the family's prefix and a number: "mla-0".
	Name string
	// Attributes are published with the device. Names in the driver's own domain omit the domain.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	// Capacity is published with the device.
	Capacity map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
	// AllowMultipleAllocations allows several claims to share the device.
	AllowMultipleAllocations bool
	// Coordinates is the position of the device in its topology.
	Coordinates Coordinates
	// Neighbors holds the names of directly linked devices, without repetition, in the order of Topology.Devices. Links are
	// symmetric: a neighbour's Neighbors contain this device.
	Neighbors []string
}

// Coordinates count from 0. Their meaning depends on the kind of the topology:
//
//	Mesh, Torus     row and column
//	Ring            0 and the index in the ring
//	BridgePairs     the pair and the side of the bridge
//	Couples         the PCIe root and 0 for the GPU, 1 for the NIC
//	HybridCubeMesh  the quad and the corner
//	Placed          the position in a drawing
//	Machine         the same for devices whose driver has links; 0 for others
type Coordinates struct {
	Row, Col int
}

// Edge is a link between two devices. A precedes B in Topology.Devices.
type Edge struct {
	A, B string
}

// Device returns a device by its name.
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

// Drivers returns the drivers of the devices without repetition, in the order of their first device.
func (t Topology) Drivers() []string {
	var drivers []string
	for _, d := range t.Devices {
		if !slices.Contains(drivers, d.Driver) {
			drivers = append(drivers, d.Driver)
		}
	}
	return drivers
}

// Edges returns every link once, ordered by A and then by B.
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

// order maps the names of devices to their indices in Devices.
func (t Topology) order() map[string]int {
	order := make(map[string]int, len(t.Devices))
	for i, d := range t.Devices {
		order[d.Name] = i
	}
	return order
}

// String returns a short description: "ring of 8 mla.example.com".
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
