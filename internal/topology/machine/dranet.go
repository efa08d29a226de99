// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/celset/celset/internal/topology"

const dranetDriver = "dra.net"

// The attributes of the driver for network interfaces have their domain in their names.
const (
	dranetNUMANode   = "dra.net/numaNode"
	dranetPCIAddress = "dra.net/pciAddress"
	dranetRDMA       = "dra.net/rdma"
	dranetRDMADevice = "dra.net/rdmaDevice"
	dranetIfName     = "dra.net/ifName"
	dranetVirtual    = "dra.net/virtual"
	dranetIPv4       = "dra.net/ipv4"
)

// pciInterface is a network interface on the PCI bus, named after its address. What else
// there is to say depends on the cloud.
func pciInterface(address string, rdma bool, more attributes) topology.Device {
	return topology.Device{
		Driver: dranetDriver, Name: "pci-" + labelOf(address),
		Attributes: with(attributes{
			dranetPCIAddress: text(address),
			dranetRDMA:       truth(rdma),
			dranetVirtual:    truth(false),
		}, more),
	}
}

// ethernet is what an interface that the kernel knows says besides.
func ethernet(ifName string, mtu int) attributes {
	return attributes{
		dranetIfName:            text(ifName),
		"dra.net/type":          text("device"),
		"dra.net/state":         text("up"),
		"dra.net/encapsulation": text("ether"),
		"dra.net/mtu":           number(mtu),
		"dra.net/alias":         text(""),
		"dra.net/ebpf":          truth(false),
		"dra.net/sriov":         truth(false),
	}
}

// virtualInterface is one that is on no bus, and so on no NUMA node and below no root. It is
// named after the interface, as far as names of devices allow.
func virtualInterface(name, ifName, linkType, state string) topology.Device {
	return topology.Device{
		Driver: dranetDriver, Name: name,
		Attributes: with(ethernet(ifName, 1400), attributes{
			"dra.net/type":  text(linkType),
			"dra.net/state": text(state),
			dranetRDMA:      truth(false),
			dranetVirtual:   truth(true),
		}),
	}
}
