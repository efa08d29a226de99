// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

const (
	gaudiDriver    = "gaudi.intel.com"
	intelGPUDriver = "gpu.intel.com"
)

func intelMachines() []Machine {
	return []Machine{
		{
			Name: "intel-gaudi2", Title: "8 Intel Gaudi 2, one below each PCIe root",
			devices: gaudi2, classes: sameName(gaudiDriver),
		},
		{
			Name: "intel-gpu", Title: "4 Intel Data Center GPU Max 1550, two below each PCIe root",
			devices: intelGPUs, classes: sameName(intelGPUDriver),
		},
	}
}

// intelDevice is named after its address and its PCI device ID. It tells its root twice, in
// the driver's own way and in the common one.
func intelDevice(driver string, bus, function int, pciID string, more attributes) topology.Device {
	address := addressAt(0, bus+function, 0, 0)
	return topology.Device{
		Driver: driver, Name: labelOf(address) + "-" + pciID,
		Attributes: with(attributes{
			"pciAddress": text(address),
			"pciRoot":    text(fmt.Sprintf("%02x", bus-1)),
			pcieRoot:     text(rootAt(0, bus-1)),
			"healthy":    truth(true),
		}, more),
	}
}

func gaudi2(node string) []topology.Device {
	var devices []topology.Device
	for i, bus := range []int{0x0f, 0x19, 0x31, 0x43, 0x9a, 0xb3, 0xcc, 0xe5} {
		device := intelDevice(gaudiDriver, bus, 0, "0x1020", attributes{
			"model":     text("Gaudi2"),
			"moduleIdx": number(i),
			"serial":    text("AN" + fingerprint(node, gaudiDriver, fmt.Sprint(i))[:8]),
		})
		devices = append(devices, device)
	}
	return devices
}

func intelGPUs(string) []topology.Device {
	var devices []topology.Device
	for _, bus := range []int{0x3a, 0x9a} {
		for function := range 2 {
			device := intelDevice(intelGPUDriver, bus, function, "0x0bd5", attributes{
				"family": text("Max Series"),
				"model":  text("Max 1550"),
				"sriov":  truth(true),
			})
			device.Capacity = capacities{"memory": quantity("128Gi"), "millicores": quantity("1000")}
			devices = append(devices, device)
		}
	}
	return devices
}
