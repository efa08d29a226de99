// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/internal/topology"
)

// nodes are those that expressions are for.
var nodes = []Hardware{
	ring, mesh, torus, board, bridged, cube, coupled, server, partitioned, pod, host, sockets,
	rack, chipTorus, neurons, accelerators, rails,
}

// Kinds of nodes that package topology wires.
var (
	ring = wired("ring", func() (topology.Topology, error) {
		return topology.NewRing(mla, 8)
	})
	mesh = wired("mesh", func() (topology.Topology, error) {
		return topology.NewMesh(mla, 3, 3)
	})
	torus = wired("torus", func() (topology.Topology, error) {
		return topology.NewTorus(mla, 3, 3)
	})
	board = wired("board", func() (topology.Topology, error) {
		return topology.NewMesh(mla, 2, 4)
	})
	bridged = wired("bridged", func() (topology.Topology, error) {
		return topology.NewBridgePairs(topology.Family{Driver: "gpu.example.com", Prefix: "gpu"}, 8)
	})
	cube = wired("cube", func() (topology.Topology, error) {
		return topology.NewHybridCubeMesh(topology.Family{Driver: "gpu.example.com", Prefix: "gpu"}, topology.PeersAsStringAndList)
	})
	coupled = wired("coupled", func() (topology.Topology, error) {
		return topology.NewCouples(topology.Family{Driver: "gpu.example.com", Prefix: "gpu"},
			topology.Family{Driver: "nic.example.com", Prefix: "nic"}, 4)
	})

	mla = topology.Family{Driver: "mla.example.com", Prefix: "mla"}
)

func wired(name string, make func() (topology.Topology, error)) Hardware {
	return Hardware{Name: name, Devices: func() []Device {
		t, err := make()
		if err != nil {
			panic(err) // the arguments are constants, and a test asks for all of them
		}
		var devices []Device
		for _, d := range t.Devices {
			devices = append(devices, Device{d.Driver, resourceapi.Device{Name: d.Name, Attributes: d.Attributes}})
		}
		return devices
	}}
}

// Kinds of nodes with the attributes that drivers publish.
var (
	// server has GPUs of two kinds below four PCIe switches on two NUMA nodes.
	server = Hardware{Name: "server", Devices: func() []Device {
		return devices("gpu.nvidia.com", "gpu", 8, func(i int) attributes {
			model := pick(i < 6, "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB")
			return attributes{
				"productName": model, "architecture": pick(i < 6, "Hopper", "Ampere"), "index": i, "uuid": fmt.Sprintf("GPU-%08x", i*2654435761%(1<<32)),
				"driverVersion": version("550.54.15"), "cudaComputeCapability": version(pick(i < 6, "9.0.0", "8.0.0")),
				"resource.kubernetes.io/pcieRoot": fmt.Sprintf("pci0000:%02x", i/2*16), "resource.kubernetes.io/numaNode": i / 4,
				"switch": fmt.Sprintf("sw-%d", i/2), "healthy": i != 5,
				"memory": resource.MustParse(pick(i < 6, "80Gi", "40Gi")),
			}
		})
	}}

	// partitioned has parts of two GPUs.
	partitioned = Hardware{Name: "partitioned", Devices: func() []Device {
		return devices("mig.example.com", "part", 8, func(i int) attributes {
			profile := []string{"1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"}[i%4]
			return attributes{
				"profile": profile, "parentUUID": fmt.Sprintf("GPU-%d", i/4), "parentIndex": i / 4, "placement": i % 4,
				"memory": resource.MustParse([]string{"10Gi", "10Gi", "20Gi", "40Gi"}[i%4]), "slices": resource.MustParse([]string{"1", "1", "2", "3"}[i%4]),
			}
		})
	}}

	// pod has TPU chips in a cube of two by two by two, with coordinates as text.
	pod = Hardware{Name: "pod", Devices: func() []Device {
		return devices("tpu.example.com", "chip", 8, func(i int) attributes {
			return attributes{
				"coords": fmt.Sprintf("%d,%d,%d", i&1, i>>1&1, i>>2), "x": i & 1, "y": i >> 1 & 1, "z": i >> 2,
				"tpuGen": pick(i == 7, "v5p", "v5e"), "tray": fmt.Sprintf("tray-%d/slot-%d", i/4, i%4),
			}
		})
	}}

	// host has network interfaces with functions, some of them fast.
	host = Hardware{Name: "host", Devices: func() []Device {
		return devices("dra.net", "net", 8, func(i int) attributes {
			return attributes{
				"ifName": fmt.Sprintf("eth%d", i), "rdma": i%2 == 0, "numaNode": i / 4, "pfName": fmt.Sprintf("ens%df0", i/2),
				"speedMbps": []int{100000, 25000, 200000, 100000}[i%4], "mtu": pick(i == 3, 1500, 9000), "rails": []int64{int64(i % 4), int64((i + 1) % 4)},
				"bandwidth": resource.MustParse(pick(i%2 == 0, "100G", "25G")), "firmware": version(fmt.Sprintf("22.%d.1", 30+i/3)),
			}
		})
	}}

	// sockets has CPU cores of two kinds.
	sockets = Hardware{Name: "sockets", Devices: func() []Device {
		return devices("cpu.example.com", "core", 9, func(i int) attributes {
			return attributes{
				"coreID": i, "socketID": i / 5, "numaNodeID": i / 3, "cacheID": i / 2,
				"coreType": pick(i%3 == 2, "e-core", "p-core"), "siblings": []string{fmt.Sprintf("core-%d", i^1)}, "id": fmt.Sprintf("core-%d", i),
			}
		})
	}}
)

// attributes are attributes as Go values, and capacities as quantities.
type attributes map[resourceapi.QualifiedName]any

type version string

func pick[V any](first bool, a, b V) V {
	if first {
		return a
	}
	return b
}

// devices makes n devices named prefix-<number>.
func devices(driver, prefix string, n int, of func(int) attributes) []Device {
	result := make([]Device, n)
	for i := range result {
		result[i] = Device{driver, resourceapi.Device{
			Name:       fmt.Sprintf("%s-%d", prefix, i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
		}}
		for name, value := range of(i) {
			if amount, ok := value.(resource.Quantity); ok {
				result[i].Capacity[name] = resourceapi.DeviceCapacity{Value: amount}
				continue
			}
			result[i].Attributes[name] = attribute(value)
		}
	}
	return result
}

func attribute(value any) resourceapi.DeviceAttribute {
	switch value := value.(type) {
	case int:
		return resourceapi.DeviceAttribute{IntValue: new(int64(value))}
	case bool:
		return resourceapi.DeviceAttribute{BoolValue: &value}
	case string:
		return resourceapi.DeviceAttribute{StringValue: &value}
	case version:
		return resourceapi.DeviceAttribute{VersionValue: new(string(value))}
	case []string:
		return resourceapi.DeviceAttribute{StringValues: value}
	case []int64:
		return resourceapi.DeviceAttribute{IntValues: value}
	default:
		panic(fmt.Sprintf("no attribute of type %T", value)) // in the tables above
	}
}
