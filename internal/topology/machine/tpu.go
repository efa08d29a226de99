// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/celset/celset/internal/topology"
)

const tpuDriver = "tpu.google.com"

func tpuMachines() []Machine {
	return []Machine{{
		Name: "google-tpu", Title: "Google TPU: 8 chips, whose coordinates are not published",
		devices: tpus, classes: sameName(tpuDriver),
	}}
}

func tpus(node string) []topology.Device {
	const chips = 8
	var devices []topology.Device
	for i := range chips {
		name := fmt.Sprintf("tpu-%d", i)
		devices = append(devices, topology.Device{
			Driver: tpuDriver, Name: name,
			Attributes: attributes{
				"index":  number(i),
				"tpuGen": text("v6e"),
				"uuid":   text(uuid(node, tpuDriver, name)),
			},
		})
	}
	return devices
}
