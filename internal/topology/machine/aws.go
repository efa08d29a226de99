// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

func awsMachines() []Machine {
	return []Machine{
		{
			Name: "aws-p4d", Title: "AWS p4d.24xlarge: 8 A100, two below each PCIe root, with an EFA",
			devices: p4d, classes: append(nvidiaClasses(), sameName(dranetDriver)...),
		},
		{
			Name: "aws-trn1", Title: "AWS trn1.32xlarge: 16 Trainium in a 4x4 torus, and 8 EFAs for two each",
			devices: trn1, classes: sameName(neuronDriver, dranetDriver),
		},
	}
}

// p4d has two GPUs and one EFA below each of four roots, two roots on each NUMA node, and
// the interfaces for everything else beside the EFAs of three.
func p4d(node string) []topology.Device {
	buses := []int{0x10, 0x20, 0x90, 0xa0}
	// Devices of a bus as the hypervisor numbers them.
	const firstGPU, efa, ena, enas = 0x1c, 0x1b, 0x19, 3
	var gpus, nics []topology.Device
	for i, bus := range buses {
		root := rootAt(0, bus)
		for j := range 2 {
			gpus = append(gpus, a100.gpu(node, len(gpus), root, addressAt(0, bus, firstGPU+j, 0)))
		}
		where := attributes{pcieRoot: text(root), dranetNUMANode: number(i / 2)}
		address := addressAt(0, bus, efa, 0)
		nics = append(nics, pciInterface(address, true, with(where, attributes{
			dranetRDMADevice: text(fmt.Sprintf("rdmap%ds%d", bus, efa)),
		})))
		if i < enas {
			more := with(ethernet(fmt.Sprintf("ens%d", 32*i+5), 9001), where)
			nics = append(nics, pciInterface(addressAt(0, bus, ena, 0), false, more))
		}
	}
	return append(gpus, nics...)
}

const neuronDriver = "neuron.aws.com"

const (
	trn1Side    = 4
	trn1Devices = trn1Side * trn1Side
)

// trn1 publishes the devices of its torus in no order.
func trn1(node string) []topology.Device {
	var devices []topology.Device
	order := map[string]int{}
	for i, id := range scattered(trn1Devices) {
		devices = append(devices, neuronDevice(node, id))
		order[devices[i].Name] = i
	}
	for _, device := range devices {
		slices.SortFunc(device.Neighbors, func(a, b string) int { return order[a] - order[b] })
	}
	const firstBus, busesApart = 0x10, 0x10
	for i := range trn1Devices / 2 {
		address := addressAt(0, firstBus+i*busesApart, 0x1d, 0)
		devices = append(devices, pciInterface(address, true, attributes{
			dranetRDMADevice:   text(fmt.Sprintf("rdmap%ds29", firstBus+i*busesApart)),
			deviceGroupName(1): text(deviceGroup(node, 1, i)),
		}))
	}
	return append(devices, pciInterface(addressAt(0, firstBus, 0x1e, 0), false, ethernet("ens32", 9001)))
}

// neuronDevice is one of the torus. Groups are stretches of devices in the order of their
// numbers: two, and one, two and all columns.
func neuronDevice(node string, id int) topology.Device {
	x, y := id/trn1Side, id%trn1Side
	at := func(x, y int) string {
		return "neuron-device-" + strconv.Itoa((x+trn1Side)%trn1Side*trn1Side+(y+trn1Side)%trn1Side)
	}
	device := topology.Device{
		Driver: neuronDriver, Name: at(x, y),
		Attributes: attributes{
			"deviceId":            number(id),
			"topology_x":          number(x),
			"topology_y":          number(y),
			"instanceType":        text("trn1.32xlarge"),
			"neuronDriverVersion": version("2.24.7"),
		},
		Coordinates: topology.Coordinates{Row: y, Col: x},
		Neighbors:   []string{at(x, y-1), at(x, y+1), at(x-1, y), at(x+1, y)},
	}
	for group, devices := range map[int]int{1: 2, 4: trn1Side, 8: 2 * trn1Side, 16: trn1Devices} {
		device.Attributes[deviceGroupName(group)] = text(deviceGroup(node, group, id/devices))
	}
	return device
}

func deviceGroupName(group int) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(fmt.Sprintf("resource.aws.com/devicegroup%d_id", group))
}

// deviceGroup identifies the group with a number among those of its size.
func deviceGroup(node string, group, number int) string {
	return fingerprint(node, "devicegroup", strconv.Itoa(group), strconv.Itoa(number))[:16]
}
