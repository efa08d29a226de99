// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

// Board has the devices of a machine by their places.
type Board struct {
	// NUMANodes are in the order of their numbers. The last one may have the devices whose
	// NUMA node is unknown.
	NUMANodes []NUMANode
	// Others are network interfaces that belong to no accelerator: bridges, tunnels and the
	// interfaces of the node itself.
	Others []topology.Device
	// Guessed are the devices whose NUMA node is known by their PCI domain alone.
	Guessed []topology.Device
}

// NUMANode has the devices of one NUMA node.
type NUMANode struct {
	// Known is false for devices whose NUMA node is unknown. Number is 0 then.
	Known  bool
	Number int64
	// Devices have no known PCIe root, or several.
	Devices []topology.Device
	// Roots are in the order of their names.
	Roots []PCIeRoot
}

// PCIeRoot has the devices below one PCIe root. Accelerators come first, in the order of
// their drivers. Network interfaces with RDMA come before those without.
type PCIeRoot struct {
	Name    string
	Devices []topology.Device
}

// NewBoard returns the devices of one node by their places, which [topology.Locate] finds.
// Devices of a driver are in the order of the numbers in their names, because real pools
// have no order.
func NewBoard(devices []topology.Device) Board {
	sorted := inOrder(devices)
	locations := topology.Locate(sorted)
	drivers := driversBelow(sorted, locations)
	var board Board
	for i, d := range sorted {
		l := locations[i]
		if ordinaryInterface(d) && (len(l.Roots) != 1 || len(drivers[l.Roots[0]]) < 2) {
			board.Others = append(board.Others, d)
			continue
		}
		if l.Source == topology.ByDomain {
			board.Guessed = append(board.Guessed, d)
		}
		node := board.numaNode(l)
		if len(l.Roots) != 1 {
			node.Devices = append(node.Devices, d)
			continue
		}
		root := node.root(l.Roots[0])
		root.Devices = append(root.Devices, d)
	}
	board.sort()
	return board
}

// inOrder returns the devices sorted by driver, and those of a driver by name. Network
// interfaces come last.
func inOrder(devices []topology.Device) []topology.Device {
	drivers := topology.Topology{Devices: devices}.Drivers()
	result := slices.Clone(devices)
	slices.SortStableFunc(result, func(a, b topology.Device) int {
		return cmp.Or(
			compareBool(isInterface(a), isInterface(b)),
			cmp.Compare(slices.Index(drivers, a.Driver), slices.Index(drivers, b.Driver)),
			compareBool(ordinaryInterface(a), ordinaryInterface(b)),
			compareNames(a.Name, b.Name))
	})
	return result
}

// driversBelow returns the drivers that have a device below a root, for each root.
func driversBelow(devices []topology.Device, locations []topology.Location) map[string]map[string]bool {
	result := map[string]map[string]bool{}
	for i, l := range locations {
		if len(l.Roots) != 1 {
			continue
		}
		if result[l.Roots[0]] == nil {
			result[l.Roots[0]] = map[string]bool{}
		}
		result[l.Roots[0]][devices[i].Driver] = true
	}
	return result
}

// isInterface reports whether a device is a network interface. Drivers of such devices
// publish for each whether it has RDMA, as dra.net does.
func isInterface(d topology.Device) bool { return rdma(d).BoolValue != nil }

// ordinaryInterface reports whether a device is a network interface without RDMA.
func ordinaryInterface(d topology.Device) bool { return isInterface(d) && !*rdma(d).BoolValue }

func rdma(d topology.Device) resourceapi.DeviceAttribute {
	const own, dranet = "rdma", "dra.net/rdma"
	if value, found := d.Attributes[dranet]; found {
		return value
	}
	return d.Attributes[own]
}

// numaNode returns the NUMA node of a location, and adds a missing one to the board. The pointer is valid until the
// next call.
func (b *Board) numaNode(l topology.Location) *NUMANode {
	known := l.Source != topology.Unknown
	i := slices.IndexFunc(b.NUMANodes, func(n NUMANode) bool { return n.Known == known && n.Number == l.NUMANode })
	if i < 0 {
		i = len(b.NUMANodes)
		b.NUMANodes = append(b.NUMANodes, NUMANode{Known: known, Number: l.NUMANode})
	}
	return &b.NUMANodes[i]
}

func (n *NUMANode) root(name string) *PCIeRoot {
	i := slices.IndexFunc(n.Roots, func(r PCIeRoot) bool { return r.Name == name })
	if i < 0 {
		i = len(n.Roots)
		n.Roots = append(n.Roots, PCIeRoot{Name: name})
	}
	return &n.Roots[i]
}

func (b *Board) sort() {
	slices.SortFunc(b.NUMANodes, func(a, b NUMANode) int {
		return cmp.Or(compareBool(!a.Known, !b.Known), cmp.Compare(a.Number, b.Number))
	})
	for _, node := range b.NUMANodes {
		slices.SortFunc(node.Roots, func(a, b PCIeRoot) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// compareBool sorts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// compareNames sorts names by the numbers in them: gpu-2 before gpu-10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		partA, partB := leadingPart(a), leadingPart(b)
		if c := comparePart(partA, partB); c != 0 {
			return c
		}
		a, b = a[len(partA):], b[len(partB):]
	}
	return cmp.Compare(len(a), len(b))
}

const digits = "0123456789"

// leadingPart returns the digits that a text begins with, or else the other characters.
func leadingPart(text string) string {
	if rest := strings.TrimLeft(text, digits); rest != text {
		return text[:len(text)-len(rest)]
	}
	if end := strings.IndexAny(text, digits); end >= 0 {
		return text[:end]
	}
	return text
}

func comparePart(a, b string) int {
	if strings.ContainsAny(a[:1], digits) && strings.ContainsAny(b[:1], digits) {
		x, y := strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(len(a), len(b)))
	}
	return cmp.Compare(a, b)
}
