// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

const amdDriver = "gpu.amd.com"

func amdMachines() []Machine {
	return []Machine{{
		Name: "azure-mi300x", Title: "Azure ND MI300X v5: 8 MI300X, and 8 InfiniBand functions that have no PCIe root",
		devices: mi300x, classes: sameName(amdDriver, dranetDriver),
	}}
}

// mi300x has names of devices as the kernel numbers cards and render nodes, with room for
// the partitions of each.
func mi300x(node string) []topology.Device {
	const gpus, perNUMANode, partitions = 8, 4, 8
	const firstDomain, firstCard, firstRender = 0x0002, 1, 128
	var devices []topology.Device
	for i := range gpus {
		card, render := firstCard+i*partitions, firstRender+i*partitions
		address := addressAt(firstDomain+i, 0, 0, 0)
		devices = append(devices, topology.Device{
			Driver: amdDriver, Name: fmt.Sprintf("gpu-%d-%d", card, render),
			Attributes: attributes{
				"type":             text("amdgpu"),
				"cardIndex":        number(card),
				"renderIndex":      number(render),
				"deviceID":         text(fingerprint(node, amdDriver, address)[:16]),
				"family":           text("AI"),
				"productName":      text("AMD_Instinct_MI300X_VF"),
				"partitionProfile": text("spx_nps1"),
				"driverVersion":    version("6.12.12"),
				"pciAddr":          text(address),
				pcieRoot:           text(rootAt(firstDomain+i, 0)),
			},
			Capacity: capacities{
				"memory":       quantity("196592Mi"),
				"computeUnits": quantity("304"),
				"simdUnits":    quantity("1216"),
			},
		})
	}
	return append(devices, azureInfiniBand(gpus, perNUMANode)...)
}
