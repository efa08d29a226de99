// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/internal/topology"
)

const cpuDriver = "dra.cpu"

func cpuMachines() []Machine {
	return []Machine{
		{
			Name: "cpu-numa", Title: "CPUs, a device for each NUMA node, of which claims get a number",
			devices: func(string) []topology.Device { return cpusByNUMANode() },
			classes: sameName(cpuDriver),
		},
		{
			Name: "cpu-each", Title: "CPUs, a device for each: two sockets of 32 cores with two threads",
			devices: func(string) []topology.Device { return eachCPU() },
			classes: sameName(cpuDriver),
		},
	}
}

const (
	sockets          = 2 // with a NUMA node each
	coresPerSocket   = 32
	threadsPerCore   = 2
	coresPerCache    = 8
	cpusPerSocket    = coresPerSocket * threadsPerCore
	allCores         = sockets * coresPerSocket
	cpuSocketID      = "dra.cpu/socketID"
	cpuCapacity      = "dra.cpu/cpu"
	cpuNUMANodeOwn   = "dra.cpu/numaNodeID"
	cpuSMTEnabledOwn = "dra.cpu/smtEnabled"
)

// cpuPlace is where a CPU is. Its PCIe roots are a list, even of one.
func cpuPlace(socket int) attributes {
	return attributes{
		numaNode:         number(socket),
		cpuNUMANodeOwn:   number(socket),
		cpuSocketID:      number(socket),
		cpuSMTEnabledOwn: truth(threadsPerCore > 1),
		pcieRoot:         texts(hgxRoots(socket)...),
	}
}

// cpusByNUMANode can be given to any number of claims, in whole CPUs.
func cpusByNUMANode() []topology.Device {
	var devices []topology.Device
	for socket := range sockets {
		one := resource.MustParse("1")
		cpus := quantity(fmt.Sprint(cpusPerSocket))
		cpus.RequestPolicy = &resourceapi.CapacityRequestPolicy{
			Default:    &one,
			ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &one, Step: &one},
		}
		devices = append(devices, topology.Device{
			Driver: cpuDriver, Name: fmt.Sprintf("cpudevnuma%03d", socket),
			Attributes:               with(cpuPlace(socket), attributes{"dra.cpu/numCPUs": number(cpusPerSocket)}),
			Capacity:                 capacities{cpuCapacity: cpus},
			AllowMultipleAllocations: true,
		})
	}
	return devices
}

// eachCPU numbers the first threads of all cores, and then the second ones, as the kernel
// does. Devices that belong to one core stand beside each other.
func eachCPU() []topology.Device {
	var devices []topology.Device
	for core := range allCores {
		for thread := range threadsPerCore {
			devices = append(devices, topology.Device{
				Driver: cpuDriver, Name: fmt.Sprintf("cpudev%03d", len(devices)),
				Attributes: with(cpuPlace(core/coresPerSocket), attributes{
					"dra.cpu/cpuID":     number(core + thread*allCores),
					"dra.cpu/coreID":    number(core % coresPerSocket),
					"dra.cpu/cacheL3ID": number(core / coresPerCache),
					"dra.cpu/coreType":  text("standard"),
				}),
			})
		}
	}
	return devices
}
