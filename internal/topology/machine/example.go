// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

const exampleDriver = "gpu.example.com"

func exampleMachines() []Machine {
	return []Machine{{
		Name: "example-gpu", Title: "Kubernetes' example driver, which needs no hardware: 8 GPUs",
		devices: exampleGPUs, classes: sameName(exampleDriver),
	}}
}

// exampleGPUs are what the driver publishes if it is told nothing.
func exampleGPUs(node string) []topology.Device {
	const gpus = 8
	var devices []topology.Device
	for i := range gpus {
		name := fmt.Sprintf("gpu-%d", i)
		devices = append(devices, topology.Device{
			Driver: exampleDriver, Name: name,
			Attributes: attributes{
				"index":         number(i),
				"uuid":          text("gpu-" + uuid(node, exampleDriver, name)),
				"model":         text("LATEST-GPU-MODEL"),
				"driverVersion": version("1.0.0"),
			},
			Capacity: capacities{"memory": quantity("80Gi")},
		})
	}
	return devices
}
