// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"

	"github.com/celset/celset/internal/topology"
)

func hgxMachines() []Machine {
	classes := slices.Concat(nvidiaClasses(), sameName(dranetDriver), computeDomainClasses())
	return []Machine{
		{
			Name: "hgx-h100", Title: "HGX H100 with a rail for each GPU, among bridges, a tunnel and the interface of the node",
			devices: hgxH100, classes: classes,
		},
		{
			Name: "hgx-h100-cpu", Title: "hgx-h100 with its CPUs, a device for each NUMA node",
			devices: func(node string) []topology.Device {
				return append(hgxH100(node), cpusByNUMANode()...)
			},
			classes: slices.Concat(classes, sameName(cpuDriver)),
		},
	}
}

// hgxBuses are those of the roots, with a GPU and a rail below each.
var hgxBuses = []int{0xa0, 0xaa, 0xb4, 0xbe, 0xc8, 0xd2, 0xdc, 0xe6}

const hgxRootsPerNUMANode = 4

// hgxRoots are the roots of a NUMA node.
func hgxRoots(node int) []string {
	var roots []string
	for _, bus := range hgxBuses[node*hgxRootsPerNUMANode:][:hgxRootsPerNUMANode] {
		roots = append(roots, rootAt(0, bus))
	}
	return roots
}

// hgxH100 publishes GPUs, rails and what else the kernel has in no order.
func hgxH100(node string) []topology.Device {
	var gpus []topology.Device
	nics := []topology.Device{
		virtualInterface("br-int", "br-int", "openvswitch", "down"),
		virtualInterface("ovs-system", "ovs-system", "openvswitch", "down"),
		pciInterface(addressAt(0, 0, 3, 0), false, with(ethernet("ens3", 9000), attributes{
			pcieRoot: text(rootAt(0, 0)), dranetNUMANode: number(0),
			dranetIPv4: text(hostAddress(node, 172, 16)),
		})),
	}
	for _, i := range scattered(len(hgxBuses)) {
		bus := hgxBuses[i]
		gpus = append(gpus, h100.gpu(node, i, rootAt(0, bus), addressAt(0, bus+1, 0, 0)))
		nics = append(nics, rail(node, i))
	}
	nics = append(nics,
		virtualInterface("ovn-k8s-mp0", "ovn-k8s-mp0", "openvswitch", "unknown"),
		virtualInterface("genev-sys-6081", "genev_sys_6081", "geneve", "unknown"))
	return slices.Concat(gpus, nics, computeDomain())
}

// rail is the interface with the number. All nodes have it in the same network.
func rail(node string, i int) topology.Device {
	bus := hgxBuses[i]
	more := with(ethernet(fmt.Sprintf("rail%d", i), 9000), attributes{
		pcieRoot:         text(rootAt(0, bus)),
		dranetNUMANode:   number(i / hgxRootsPerNUMANode),
		dranetIPv4:       text(hostAddress(node, 10, i)),
		dranetRDMADevice: text(fmt.Sprintf("mlx5_%d", i)),
	})
	return pciInterface(addressAt(0, bus+2, 0, 0), true, more)
}

// hostAddress is the address of the node in a network of 16 bits.
func hostAddress(node string, first, second int) string {
	const byteValues = 1 << 8
	host := hostNumber(node)
	return fmt.Sprintf("%d.%d.%d.%d/16", first, second, host/byteValues, host%byteValues)
}
