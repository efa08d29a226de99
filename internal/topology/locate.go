// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// AttributeNUMANode is the standard attribute for the NUMA node of a device. Older drivers publish an attribute with the name
// numaNode in their own domain.
const AttributeNUMANode = "resource.kubernetes.io/numaNode"

// Source says how the NUMA node of a device was found.
type Source int

const (
	// Unknown means that the NUMA node is unknown.
	Unknown Source = iota
	// Published means that the device publishes its NUMA node.
	Published
	// ByRoot means that other devices below the same PCIe root publish the NUMA node.
	ByRoot
	// ByDomain means that devices in the PCI domains of the same CPU publish the NUMA node, and all of them publish the same
	// one.
	ByDomain
)

// Location is the position of a device in its machine.
type Location struct {
	// Source says how NUMANode was found.
	Source   Source
	NUMANode int64
	// Roots are the PCIe roots above the device. For a CPU, they are the roots near the CPU.
	Roots []string
}

// Locate returns the location of each device of one node. Drivers publish different parts of a location. For example, a GPU
// publishes its PCIe root, and the NIC below the same root also publishes its NUMA node. Locate takes the NUMA node of a device
// from the first of these sources that has it:
//
//  1. the device's own attributes;
//  2. the devices below the same PCIe root, if they publish a single NUMA node;
//  3. the devices in the PCI domains of the same CPU, if CPUs and NUMA nodes correspond one to one.
func Locate(devices []Device) []Location {
	locations := make([]Location, len(devices))
	for i, d := range devices {
		locations[i] = locationOf(d)
	}
	byRoot := numaNodes[string]{}
	for _, l := range locations {
		for _, root := range l.Roots {
			byRoot.add(root, l)
		}
	}
	for i := range locations {
		if len(locations[i].Roots) == 1 {
			byRoot.complete(locations[i].Roots[0], &locations[i], ByRoot)
		}
	}
	locateByDomain(locations)
	return locations
}

// locationOf returns the location that a device publishes.
func locationOf(d Device) Location {
	var l Location
	if node, found := numaNodeOf(d); found {
		l.Source, l.NUMANode = Published, node
	}
	switch root := d.Attributes[AttributePCIeRoot]; {
	case root.StringValue != nil:
		l.Roots = []string{*root.StringValue}
	case root.StringValues != nil:
		l.Roots = root.StringValues
	}
	return l
}

// numaNodeOf returns the NUMA node that a device publishes. It returns false for a device on several NUMA nodes, and for a
// negative number.
func numaNodeOf(d Device) (int64, bool) {
	const id = "numaNode"
	names := []resourceapi.QualifiedName{AttributeNUMANode, resourceapi.QualifiedName(d.Driver + "/" + id), id, "dra.net/" + id}
	for _, name := range names {
		value, found := d.Attributes[name]
		switch {
		case !found:
		case value.IntValue != nil:
			return *value.IntValue, *value.IntValue >= 0
		case len(value.IntValues) == 1:
			return value.IntValues[0], value.IntValues[0] >= 0
		}
	}
	return 0, false
}

// numaNodes maps a property that devices share, such as a PCIe root, to the NUMA nodes that these devices publish.
type numaNodes[K comparable] map[K]map[int64]bool

func (n numaNodes[K]) add(key K, l Location) {
	if l.Source == Unknown {
		return
	}
	if n[key] == nil {
		n[key] = map[int64]bool{}
	}
	n[key][l.NUMANode] = true
}

// complete sets the NUMA node of a location if the devices with the given key publish exactly one NUMA node.
func (n numaNodes[K]) complete(key K, l *Location, source Source) {
	if l.Source != Unknown || len(n[key]) != 1 {
		return
	}
	for node := range n[key] {
		l.Source, l.NUMANode = source, node
	}
}

// domainsPerCPU is the number of PCI domains that each CPU has, on machines with separate domains per CPU.
const domainsPerCPU = 16

// locateByDomain finds NUMA nodes by PCI domain. It is needed for machines with GPUs and NICs below different roots of the same
// CPU. It does nothing unless each CPU has exactly one NUMA node, and each NUMA node exactly one CPU.
func locateByDomain(locations []Location) {
	byCPU, cpus := numaNodes[int64]{}, map[int64]bool{}
	for _, l := range locations {
		if cpu, found := l.cpu(); found {
			byCPU.add(cpu, l)
		}
	}
	for _, nodes := range byCPU {
		for node := range nodes {
			if len(nodes) > 1 || cpus[node] {
				return
			}
			cpus[node] = true
		}
	}
	if len(byCPU) < 2 {
		return
	}
	for i := range locations {
		if cpu, found := locations[i].cpu(); found {
			byCPU.complete(cpu, &locations[i], ByDomain)
		}
	}
}

// cpu returns the number of the device's CPU, computed from the PCI domain in the name of its root, such as "pci0018:00".
func (l Location) cpu() (int64, bool) {
	if len(l.Roots) != 1 {
		return 0, false
	}
	domain, _, _ := strings.Cut(strings.TrimPrefix(l.Roots[0], "pci"), ":")
	number, err := strconv.ParseInt(domain, 16, 64)
	return number / domainsPerCPU, err == nil
}
