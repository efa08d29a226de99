// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

// blackwellMachines are trays of a rack: four GPUs at two CPUs, to which they are linked by
// NVLink, so that what PCIe says of GPUs and NICs does not meet.
func blackwellMachines() []Machine {
	classes := append(nvidiaClasses(), sameName(dranetDriver)...)
	return []Machine{
		{
			Name: "oci-gb200", Title: "OCI BM.GPU.GB200-v3.4: 4 GB200, and 8 ports of ConnectX-8 below other PCIe roots",
			devices: ociGB200, classes: classes,
		},
		{
			Name: "azure-gb300", Title: "Azure ND GB300 v6: 4 GB300, and 4 InfiniBand functions that have no PCIe root",
			devices: azureGB300, classes: classes,
		},
	}
}

// blackwellGPUs have a PCI domain each, two at each of the CPUs.
func blackwellGPUs(node string, model nvidiaModel) []topology.Device {
	var gpus []topology.Device
	for i, domain := range []int{0x0008, 0x0009, 0x0018, 0x0019} {
		gpus = append(gpus, model.gpu(node, i, rootAt(domain, 0), addressAt(domain, 6, 0, 0)))
	}
	return gpus
}

// ociGB200 has two ports below each of four roots, and what the cloud says about the place
// of the node in the network with each port.
func ociGB200(node string) []topology.Device {
	devices := blackwellGPUs(node, b200)
	const domainsPerNUMANode, ports = 2, 2
	for i, domain := range []int{0x0000, 0x0002, 0x0010, 0x0012} {
		for port := range ports {
			more := with(ethernet(fmt.Sprintf("rdma%d", i*ports+port), 4220), ociPlace(node))
			devices = append(devices, pciInterface(addressAt(domain, 3, 0, port), true, with(more, attributes{
				pcieRoot:         text(rootAt(domain, 0)),
				dranetNUMANode:   number(i / domainsPerNUMANode),
				dranetRDMADevice: text(fmt.Sprintf("mlx5_%d", i*ports+port)),
			})))
		}
	}
	return devices
}

// Sizes of the parts of the network, in nodes. Racks have as many trays as an NVL72.
const (
	ociRack         = 18
	ociLocalBlock   = ociRack
	ociNetworkBlock = 6 * ociRack
	ociIsland       = 108 * ociRack
)

// ociPlace numbers nodes rack by rack.
func ociPlace(node string) attributes {
	id := func(part string, nodes int) string {
		return fingerprint(part, fmt.Sprint((hostNumber(node)-1)/nodes))
	}
	return attributes{
		"oke.dra.net/rackId":            text(id("rack", ociRack)),
		"oke.dra.net/gpuMemoryFabricId": text(id("fabric", ociRack)),
		"oke.dra.net/localBlockId":      text(id("local", ociLocalBlock)),
		"oke.dra.net/networkBlockId":    text(id("network", ociNetworkBlock)),
		"oke.dra.net/hpcIslandId":       text(id("island", ociIsland)),
	}
}

// azureGB300 has virtual functions that the hypervisor puts below no root.
func azureGB300(node string) []topology.Device {
	const perNUMANode = 2
	return append(blackwellGPUs(node, b300), azureInfiniBand(2*perNUMANode, perNUMANode)...)
}

// azureInfiniBand are functions without a network interface. Each has a PCI domain.
func azureInfiniBand(n, perNUMANode int) []topology.Device {
	const firstDomain = 0x0101
	var devices []topology.Device
	for i := range n {
		devices = append(devices, pciInterface(addressAt(firstDomain+i, 0, 0, 0), true, attributes{
			dranetNUMANode:                   number(i / perNUMANode),
			dranetRDMADevice:                 text(fmt.Sprintf("mlx5_%d", i)),
			"dra.net/ibOnly":                 truth(true),
			"azure.dra.net/placementGroupId": text(uuid("placementGroup")),
			"dra.net/pciVendor":              text("Mellanox Technologies"),
		}))
	}
	return devices
}
