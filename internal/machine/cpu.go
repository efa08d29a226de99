// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/topology"
)

const (
	sockets        = 2 // with a NUMA node each
	coresPerSocket = 32
	threadsPerCore = 2
	coresPerCache  = 8
	allCores       = sockets * coresPerSocket
)

// eachCPU returns a machine with a device per CPU. numa has a device per socket. As in the kernel, the first threads of all
// cores are numbered before the second threads. Devices of the same core are consecutive.
func eachCPU(numa Machine) Machine {
	m := Machine{Name: "cpu-each", Title: "CPUs, a device for each: two sockets of 32 cores with two threads", classes: numa.classes}
	number := func(n int) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{IntValue: new(int64(n))} }
	for core := range allCores {
		for thread := range threadsPerCore {
			socket := numa.devices[core/coresPerSocket]
			cpu := topology.Device{Driver: socket.Driver, Name: fmt.Sprintf("cpudev%03d", len(m.devices)), Attributes: copied(socket.Attributes)}
			delete(cpu.Attributes, "dra.cpu/numCPUs")
			cpu.Attributes["dra.cpu/cpuID"] = number(core + thread*allCores)
			cpu.Attributes["dra.cpu/coreID"] = number(core % coresPerSocket)
			cpu.Attributes["dra.cpu/cacheL3ID"] = number(core / coresPerCache)
			cpu.Attributes["dra.cpu/coreType"] = resourceapi.DeviceAttribute{StringValue: new("standard")}
			m.devices = append(m.devices, cpu)
		}
	}
	return m
}
