// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/topology"
)

// The functions below decide whether a set of devices is right for an ask. The functions use facts about the machines
// instead of the CEL expressions on the pages, so that the tests check the expressions.

func stringOf(d topology.Device, name resourceapi.QualifiedName) string {
	if value := d.Attributes[name].StringValue; value != nil {
		return *value
	}
	return ""
}

func intOf(d topology.Device, name resourceapi.QualifiedName) int64 {
	if value := d.Attributes[name].IntValue; value != nil {
		return *value
	}
	return -1
}

func rootOf(d topology.Device) string { return stringOf(d, "resource.kubernetes.io/pcieRoot") }

func isRDMA(d topology.Device) bool {
	value := d.Attributes["dra.net/rdma"].BoolValue
	return value != nil && *value
}

func ofDriver(set []topology.Device, driver string) []topology.Device {
	var result []topology.Device
	for _, d := range set {
		if d.Driver == driver {
			result = append(result, d)
		}
	}
	return result
}

// allOfOne reports whether a function has the same value for all devices.
func allOfOne[V comparable](set []topology.Device, of func(topology.Device) V) bool {
	for _, d := range set {
		if of(d) != of(set[0]) {
			return false
		}
	}
	return true
}

// tally counts the devices of a set by the value of a function.
func tally[V comparable](set []topology.Device, of func(topology.Device) V) map[V]int {
	result := map[V]int{}
	for _, d := range set {
		result[of(d)]++
	}
	return result
}

// trayNUMANode returns the NUMA node of a device of a GB200 or GB300 tray.
func trayNUMANode(d topology.Device) int64 {
	if d.Driver == "dra.net" {
		return intOf(d, "dra.net/numaNode")
	}
	return map[string]int64{"pci0008:00": 0, "pci0009:00": 0, "pci0018:00": 1, "pci0019:00": 1}[rootOf(d)]
}

func onOneNUMANodeOfTray(set []topology.Device) bool { return allOfOne(set, trayNUMANode) }

func interfacesOfOneNUMANode(set []topology.Device) bool {
	return allOfOne(ofDriver(set, "dra.net"), func(d topology.Device) int64 { return intOf(d, "dra.net/numaNode") })
}

func interfacesHalfOnEach(set []topology.Device) bool {
	nics := tally(ofDriver(set, "dra.net"), func(d topology.Device) int64 { return intOf(d, "dra.net/numaNode") })
	return len(nics) == 2 && nics[0] == nics[1]
}

func ofOneProfile(set []topology.Device) bool {
	return allOfOne(set, func(d topology.Device) string { return stringOf(d, "partitionProfile") })
}

func ofOneRoot(set []topology.Device) bool { return allOfOne(set, rootOf) }

// ofOneCPUOfGaudi reports whether all devices are connected to the same CPU. The first four PCI roots of the machine belong to
// the first CPU.
func ofOneCPUOfGaudi(set []topology.Device) bool {
	return allOfOne(set, func(d topology.Device) bool {
		return slices.Contains([]string{"0e", "18", "30", "42"}, stringOf(d, "pciRoot"))
	})
}

func ofOneCPUOfGaudiIfThereIsRoom(set []topology.Device) bool {
	return len(set) > 4 || ofOneCPUOfGaudi(set)
}

// oneInterfaceEach reports whether the set has one GPU and one NIC below each PCI root that it uses.
func oneInterfaceEach(set []topology.Device) bool {
	gpus, nics := tally(ofDriver(set, "gpu.nvidia.com"), rootOf), tally(ofDriver(set, "dra.net"), rootOf)
	for root, n := range gpus {
		if n != 1 || nics[root] != 1 {
			return false
		}
	}
	return len(gpus) == len(nics)
}

// twoGPUsEach reports whether the set has two GPUs and one EFA below each PCI root that it uses.
func twoGPUsEach(set []topology.Device) bool {
	gpus, efas := tally(ofDriver(set, "gpu.nvidia.com"), rootOf), tally(ofDriver(set, "dra.net"), rootOf)
	for root, n := range gpus {
		if n != 2 || efas[root] != 1 {
			return false
		}
	}
	return len(gpus) == len(efas)
}

// onFewRoots reports whether the set uses the fewest roots possible. A root of a p4d has at most two GPUs.
func onFewRoots(set []topology.Device) bool { return len(tally(set, rootOf)) == (len(set)+1)/2 }

// socketOfHGX returns the CPU socket of a GPU. It is known only from the network interfaces below the same PCI root.
func socketOfHGX(d topology.Device) int {
	if strings.Compare(rootOf(d), "pci0000:be") <= 0 {
		return 0
	}
	return 1
}

func onOneSocketOfHGX(set []topology.Device) bool { return allOfOne(set, socketOfHGX) }

// onOneSocketOfHGXIfThereIsRoom reports whether all GPUs are on one socket. It accepts each set of more than four GPUs, because
// a socket has only four.
func onOneSocketOfHGXIfThereIsRoom(set []topology.Device) bool {
	return len(set) > 4 || onOneSocketOfHGX(set)
}

// cpusAtGPUs reports whether all CPUs and GPUs have the same NUMA node, and each GPU has the network interface next to it.
func cpusAtGPUs(set []topology.Device) bool {
	cpus := ofDriver(set, "dra.cpu")
	gpus := ofDriver(set, "gpu.nvidia.com")
	return onOneSocketOfHGX(gpus) && int64(socketOfHGX(gpus[0])) == intOf(cpus[0], "resource.kubernetes.io/numaNode")
}

func cpusAtGPUsAndRails(set []topology.Device) bool { return cpusAtGPUs(set) && oneInterfaceEach(set) }

type chip struct{ x, y int64 }

func chipOf(d topology.Device) chip {
	return chip{intOf(d, "topology_x"), intOf(d, "topology_y")}
}

// columnsOf maps each x coordinate of the Trainium devices to its y coordinates.
func columnsOf(set []topology.Device) map[int64]map[int64]bool {
	columns := map[int64]map[int64]bool{}
	for _, d := range ofDriver(set, "neuron.aws.com") {
		at := chipOf(d)
		if columns[at.x] == nil {
			columns[at.x] = map[int64]bool{}
		}
		columns[at.x][at.y] = true
	}
	return columns
}

const torusSide = 4

// isTorusBlock reports whether the devices form a block of a 4x4 torus: width consecutive values of x, height consecutive
// values of y.
func isTorusBlock(set []topology.Device, width, height int64) bool {
	columns := columnsOf(set)
	devices := len(ofDriver(set, "neuron.aws.com"))
	for x := range int64(torusSide) {
		for y := range int64(torusSide) {
			inside := 0
			for i := range width {
				for j := range height {
					if columns[(x+i)%torusSide][(y+j)%torusSide] {
						inside++
					}
				}
			}
			if inside == devices && devices == int(width*height) {
				return true
			}
		}
	}
	return false
}

// efasOfNeurons reports whether the EFAs (network interfaces) are the ones that the machine connects to the Trainium devices in
// the set.
func efasOfNeurons(set []topology.Device) bool {
	pair := func(d topology.Device) string { return stringOf(d, "resource.aws.com/devicegroup1_id") }
	neurons, efas := tally(ofDriver(set, "neuron.aws.com"), pair), tally(ofDriver(set, "dra.net"), pair)
	for id := range neurons {
		if efas[id] != 1 {
			return false
		}
	}
	return len(neurons) == len(efas)
}

func isSquareOfTorus(set []topology.Device) bool { return isTorusBlock(set, 2, 2) }

func isHalfOfTorus(set []topology.Device) bool {
	return isTorusBlock(set, 2, torusSide) || isTorusBlock(set, torusSide, 2)
}

// isBlockOfItsSize reports whether the Trainium devices form a block: two neighbours, a square of four, or two full columns or
// rows.
func isBlockOfItsSize(set []topology.Device) bool {
	switch len(set) {
	case 2:
		return isTorusBlock(set, 1, 2) || isTorusBlock(set, 2, 1)
	case 4:
		return isSquareOfTorus(set)
	default:
		return isHalfOfTorus(set)
	}
}

// gpusAndCores returns the GPUs of an HGX H100, and a device for each CPU of the first cores of each socket. Other cores are
// left out, because a set can have at most 64 devices.
func gpusAndCores() topology.Topology {
	const coresOfEach = 4
	var devices []topology.Device
	for _, name := range []string{"hgx-h100", "cpu-each"} {
		m, err := machine.ByName(name)
		if err != nil {
			panic(err) // the names are constants
		}
		devices = append(devices, m.Topology(nodeName).Devices...)
	}
	devices = slices.DeleteFunc(devices, func(d topology.Device) bool {
		return d.Driver != "gpu.nvidia.com" && (d.Driver != "dra.cpu" || coreOf(d).number >= coresOfEach)
	})
	return topology.Topology{Kind: topology.Machine, Devices: devices}
}

type core struct{ socket, number int64 }

func coreOf(d topology.Device) core {
	return core{intOf(d, "dra.cpu/socketID"), intOf(d, "dra.cpu/coreID")}
}

func areWholeCores(set []topology.Device) bool {
	for _, threads := range tally(set, coreOf) {
		if threads != 2 {
			return false
		}
	}
	return true
}

func allCPUsAtGPUs(set []topology.Device) bool {
	socket := int64(socketOfHGX(ofDriver(set, "gpu.nvidia.com")[0]))
	return !slices.ContainsFunc(ofDriver(set, "dra.cpu"), func(d topology.Device) bool { return coreOf(d).socket != socket })
}

const numaNodeAttribute = resourceapi.QualifiedName("resource.kubernetes.io/numaNode")

// twoSockets returns a server with two sockets and four NUMA nodes, two for each socket. One driver publishes the NUMA node of
// a device as a number. The other driver publishes a list, like Kubernetes' package deviceattribute: first the device's NUMA
// node, then the other NUMA node of the socket.
func twoSockets() topology.Topology {
	const numaNodes, gpusOfEach = 4, 2
	var devices []topology.Device
	for i := range numaNodes * gpusOfEach {
		devices = append(devices, topology.Device{
			Driver: "gpu.example.com", Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				numaNodeAttribute: {IntValue: new(int64(i / gpusOfEach))},
			},
		})
	}
	for i := range int64(numaNodes) {
		devices = append(devices, topology.Device{
			Driver: "nic.example.com", Name: fmt.Sprintf("nic-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				numaNodeAttribute: {IntValues: []int64{i, i ^ 1}},
			},
		})
	}
	return topology.Topology{Kind: topology.Machine, Devices: devices}
}

// haveNUMANodeInCommon reports whether one NUMA node is in the number or list of every device.
func haveNUMANodeInCommon(set []topology.Device) bool {
	nodes := func(d topology.Device) []int64 {
		if value := d.Attributes[numaNodeAttribute]; value.IntValue != nil {
			return []int64{*value.IntValue}
		}
		return d.Attributes[numaNodeAttribute].IntValues
	}
	return slices.ContainsFunc(nodes(set[0]), func(node int64) bool {
		return !slices.ContainsFunc(set, func(d topology.Device) bool { return !slices.Contains(nodes(d), node) })
	})
}
