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

// Board has the devices of a machine, grouped by NUMA node and by PCIe root.
type Board struct {
	// NUMANodes is sorted by number. If the NUMA node of some devices is unknown, the last entry has these devices.
	NUMANodes []NUMANode
	// Others are network interfaces without a nearby accelerator: bridges, tunnels and interfaces of the node itself.
	Others []topology.Device
	// Guessed has the devices whose NUMA node was derived from their PCI domain, because no driver publishes it.
	Guessed []topology.Device
}

// NUMANode holds the devices of one NUMA node.
type NUMANode struct {
	// Known is false for devices without a NUMA node. Number is 0 then.
	Known  bool
	Number int64
	// Devices has the devices of the NUMA node that have no PCIe root, or several.
	Devices []topology.Device
	// Roots is sorted by name.
	Roots []PCIeRoot
}

// PCIeRoot has the devices below one PCIe root. Accelerators come first, sorted by driver. Network interfaces follow, with RDMA
// interfaces first.
type PCIeRoot struct {
	Name    string
	Devices []topology.Device
}

// NewBoard returns the board of the devices of one node. [topology.Locate] determines their NUMA nodes and PCIe roots. The
// devices of a driver are sorted by the numbers in their names, because real pools are not sorted.
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

// inOrder returns the devices sorted by driver, then by name. Network interfaces come last.
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

// driversBelow maps each PCIe root to the set of drivers that have a device below the root.
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

// isInterface reports whether a device is a network interface. Only drivers of network interfaces, such as dra.net, publish an
// attribute about RDMA.
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

// numaNode returns the NUMA node of a location, and adds it to the board if it is missing. The pointer is valid until the next
// call.
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

// compareBool orders false before true.
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

// compareNames compares names and treats digits in them as numbers: gpu-2 comes before gpu-10.
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

// leadingPart returns the digits at the beginning of a text. If it begins with another character, it returns the text up to the
// first digit.
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
