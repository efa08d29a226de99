// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/celset/celset/internal/topology"
)

const nvidiaDriver = "gpu.nvidia.com"

// nvidiaModel is what GPUs of one model have in common.
type nvidiaModel struct {
	product, architecture, computeCapability, memory string
}

var (
	a100 = nvidiaModel{"NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40Gi"}
	h100 = nvidiaModel{"NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi"}
	b200 = nvidiaModel{"NVIDIA GB200", "Blackwell", "10.0.0", "189471Mi"}
	b300 = nvidiaModel{"NVIDIA GB300", "Blackwell", "10.3.0", "284208Mi"}
)

// gpu is the GPU with the number, at an address such as "0000:10:1c.0", below a root. The
// driver does not say on which NUMA node it is.
func (m nvidiaModel) gpu(node string, index int, root, address string) topology.Device {
	return topology.Device{
		Driver: nvidiaDriver, Name: "gpu-" + strconv.Itoa(index),
		Attributes: attributes{
			"type":                  text("gpu"),
			"uuid":                  text("GPU-" + uuid(node, nvidiaDriver, address)),
			"productName":           text(m.product),
			"brand":                 text("Nvidia"),
			"architecture":          text(m.architecture),
			"cudaComputeCapability": version(m.computeCapability),
			"cudaDriverVersion":     version("13.0.0"),
			"driverVersion":         version("580.95.5"),
			pcieRoot:                text(root),
			pciBusID:                text(address),
		},
		Capacity: capacities{"memory": quantity(m.memory)},
	}
}

// The driver for channels between GPUs of several nodes comes with the one for GPUs.
const computeDomainDriver = "compute-domain.nvidia.com"

func computeDomain() []topology.Device {
	device := func(kind string) topology.Device {
		return topology.Device{
			Driver: computeDomainDriver, Name: kind + "-0",
			Attributes: attributes{"type": text(kind), "id": number(0)},
		}
	}
	return []topology.Device{device("channel"), device("daemon")}
}

func nvidiaClasses() []class {
	return []class{{name: nvidiaDriver, driver: nvidiaDriver, deviceType: "gpu"}}
}

func computeDomainClasses() []class {
	return []class{
		{name: "compute-domain-daemon.nvidia.com", driver: computeDomainDriver, deviceType: "daemon"},
		{name: "compute-domain-default-channel.nvidia.com", driver: computeDomainDriver, deviceType: "channel"},
	}
}

// rootAt is the root of a domain and a bus: "pci0000:10".
func rootAt(domain, bus int) string { return fmt.Sprintf("pci%04x:%02x", domain, bus) }

// addressAt is a PCI address: "0000:10:1c.0".
func addressAt(domain, bus, device, function int) string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", domain, bus, device, function)
}

// labelOf is an address in the form that names of devices can have: "0000-10-1c-0".
func labelOf(address string) string {
	return strings.NewReplacer(":", "-", ".", "-").Replace(address)
}
