// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Machines of the size that people have.
var (
	// rack is the 72 GPUs of 18 trays that one NVLink switch joins.
	rack = Hardware{Name: "rack", Devices: func() []Device {
		return devices("gpu.nvidia.com", "gpu", 72, func(i int) attributes {
			tray, slot := i/4, i%4
			return attributes{
				"index": i, "tray": tray, "slot": slot, "uuid": fmt.Sprintf("GPU-%08x", i*2654435761%(1<<32)),
				"name": fmt.Sprintf("t%02d-s%d", tray, slot), "zone": []string{"a", "b", "c"}[tray/6],
				"rails":                           []int64{int64(slot), int64(4 + slot)},
				"peers":                           []string{fmt.Sprintf("t%02d-s%d", tray, slot^1), fmt.Sprintf("t%02d-s%d", tray, slot^2)},
				"resource.kubernetes.io/pcieRoot": fmt.Sprintf("pci00%02x:00", []int{8, 9, 24, 25}[slot]), "memory": resource.MustParse("186Gi"),
			}
		})
	}}

	// chipTorus is a torus of four by four by four.
	chipTorus = Hardware{Name: "chips of a torus", Devices: func() []Device {
		return devices("tpu.google.com", "tpu", 64, func(i int) attributes {
			x, y, z := i/16, i/4%4, i%4
			return attributes{"index": i, "x": x, "y": y, "z": z, "coords": fmt.Sprintf("%d,%d,%d", x, y, z), "tpuGen": "v5p"}
		})
	}}

	// neurons are the 16 devices of a trn1.32xlarge, in the order in which they are published.
	neurons = Hardware{Name: "neurons", Devices: func() []Device {
		order := []int{0, 1, 10, 11, 12, 13, 14, 15, 2, 3, 4, 5, 6, 7, 8, 9}
		return devices("neuron.aws.com", "neuron-device", 16, func(at int) attributes {
			i := order[at]
			return attributes{
				"deviceId": i, "topology_x": i / 4, "topology_y": i % 4,
				"resource.aws.com/devicegroup1_id": fmt.Sprintf("g1-%d", i/2), "resource.aws.com/devicegroup4_id": fmt.Sprintf("g4-%d", i/4),
				"resource.aws.com/devicegroup8_id": fmt.Sprintf("g8-%d", i/8), "resource.aws.com/devicegroup16_id": "g16",
			}
		})
	}}

	// accelerators are the eight GPUs of an MI300X with their links as text.
	accelerators = Hardware{Name: "accelerators", Devices: func() []Device {
		return devices("gpu.amd.com", "gpu", 8, func(i int) attributes {
			return attributes{
				"index": i, "partitionProfile": pick(i == 7, "cpx_nps1", "spx_nps1"), "cardIndex": 1 + 8*i,
				"resource.kubernetes.io/pcieRoot": fmt.Sprintf("pci%04x:00", i), "resource.kubernetes.io/numaNode": i / 4,
				"memory": resource.MustParse("196592Mi"), "computeUnits": resource.MustParse(pick(i == 7, "38", "304")),
			}
		})
	}}

	// rails has 16 GPUs and 16 NICs below 8 PCIe roots.
	rails = Hardware{Name: "rails", Devices: func() []Device {
		root := func(i int) string { return fmt.Sprintf("pci0000:%02x", 0xa0+10*(i/2)) }
		gpus := devices("gpu.nvidia.com", "gpu", 16, func(i int) attributes {
			i = i * 5 % 16
			return attributes{"index": i, "resource.kubernetes.io/pcieRoot": root(i), "resource.kubernetes.io/pciBusID": fmt.Sprintf("0000:%02x:00.0", i), "memory": resource.MustParse("80Gi")}
		})
		return append(gpus, devices("dra.net", "nic", 16, func(i int) attributes {
			return attributes{
				"resource.kubernetes.io/pcieRoot": root(i), "numaNode": i / 8, "rdma": i%4 != 3, "rail": i / 2, "ifName": fmt.Sprintf("eth%d", i),
				"ipv4": fmt.Sprintf("10.%d.%d.1/16", i/2, i), "speedGbps": []int{400, 400, 200, 100}[i%4], "bandwidth": resource.MustParse([]string{"400G", "400G", "200G", "100G"}[i%4]),
			}
		})...)
	}}
)
