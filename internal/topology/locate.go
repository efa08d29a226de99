// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// AttributeNUMANode is the standard attribute for the NUMA node that a device is on. Drivers
// that are older than it have one of the same name in their own domain.
const AttributeNUMANode = "resource.kubernetes.io/numaNode"

// Source says how the NUMA node of a device is known.
type Source int

const (
	// Unknown means that it is not.
	Unknown Source = iota
	// Published means that the device says it itself.
	Published
	// ByRoot means that another device below the same PCIe root says it.
	ByRoot
	// ByDomain means that all devices whose PCI domains belong to the same CPU say it.
	ByDomain
)

// Location is where a device is in its machine.
type Location struct {
	// Source says whether and how NUMANode is known.
	Source   Source
	NUMANode int64
	// Roots are the PCIe roots that the device hangs below or, of CPUs, that are near.
	Roots []string
}

// Locate says where devices of one node are: by their attributes, or by those of devices that
// are in the same place and say more. Drivers say what they happen to know: a GPU its PCIe
// root, the NIC below the same root its NUMA node as well.
func Locate(devices []Device) []Location {
	locations := make([]Location, len(devices))
	for i, d := range devices {
		locations[i] = locationOf(d)
	}
	byRoot := numaNodes[string]{}
	for _, l := range locations {
		for _, root := range l.Roots {
			byRoot.learn(root, l)
		}
	}
	for i := range locations {
		if len(locations[i].Roots) == 1 {
			byRoot.tell(locations[i].Roots[0], &locations[i], ByRoot)
		}
	}
	locateByDomain(locations)
	return locations
}

// locationOf is what a device says itself.
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

// numaNodeOf is what a device says of its NUMA node. Those that are on several, and those
// that say a negative number, are on none.
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

// numaNodes are what devices that have something in common say of their NUMA nodes.
type numaNodes[K comparable] map[K]map[int64]bool

func (n numaNodes[K]) learn(key K, l Location) {
	if l.Source == Unknown {
		return
	}
	if n[key] == nil {
		n[key] = map[int64]bool{}
	}
	n[key][l.NUMANode] = true
}

// tell completes a location if there is only one answer.
func (n numaNodes[K]) tell(key K, l *Location, source Source) {
	if l.Source != Unknown || len(n[key]) != 1 {
		return
	}
	for node := range n[key] {
		l.Source, l.NUMANode = source, node
	}
}

// domainsPerCPU is how many PCI domains a CPU has on machines where it has its own.
const domainsPerCPU = 16

// locateByDomain is for machines with GPUs and NICs below different roots of the CPU that
// they have in common. It has no opinion where domains don't go with NUMA nodes one to one.
func locateByDomain(locations []Location) {
	byCPU, cpus := numaNodes[int64]{}, map[int64]bool{}
	for _, l := range locations {
		if cpu, found := l.cpu(); found {
			byCPU.learn(cpu, l)
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
			byCPU.tell(cpu, &locations[i], ByDomain)
		}
	}
}

// cpu numbers CPUs by the domain in the name of a root: "pci0018:00".
func (l Location) cpu() (int64, bool) {
	if len(l.Roots) != 1 {
		return 0, false
	}
	domain, _, _ := strings.Cut(strings.TrimPrefix(l.Roots[0], "pci"), ":")
	number, err := strconv.ParseInt(domain, 16, 64)
	return number / domainsPerCPU, err == nil
}
