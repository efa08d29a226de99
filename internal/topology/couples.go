// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// AttributePCIeRoot is the standard string attribute for the PCIe root complex of a device, such as "pci0000:00". All drivers
// use this name, so that devices of different drivers can be compared.
const AttributePCIeRoot = "resource.kubernetes.io/pcieRoot"

// NewCouples returns n GPUs and n NICs. Each of n PCIe root complexes has one GPU and one NIC below it. The families may have
// different drivers, each with its own pool. The families must have different prefixes, so that device names are unique.
func NewCouples(gpus, nics Family, n int) (Topology, error) {
	if err := checkCouples(gpus, nics, n); err != nil {
		return Topology{}, fmt.Errorf("couples: %w", err)
	}
	devices := make([]Device, 2*n)
	links := make([][2]int, n)
	for i := range n {
		devices[i] = gpus.device(i, Coordinates{Row: i, Col: 0}, pcieAttributes(i))
		devices[n+i] = nics.device(i, Coordinates{Row: i, Col: 1}, pcieAttributes(i))
		links[i] = [2]int{i, n + i}
	}
	connect(devices, links)
	return Topology{Kind: Couples, Devices: devices}, nil
}

func checkCouples(gpus, nics Family, n int) error {
	if err := checkCount("couples", n, 1, MaxDevices/2); err != nil {
		return err
	}
	if err := gpus.validate(n); err != nil {
		return fmt.Errorf("GPUs: %w", err)
	}
	if err := nics.validate(n); err != nil {
		return fmt.Errorf("NICs: %w", err)
	}
	if gpus.Prefix == nics.Prefix {
		return fmt.Errorf("prefix %q: must not be that of both GPUs and NICs", gpus.Prefix)
	}
	return nil
}

// pcieAttributes numbers PCIe roots as real machines do. The bus numbers of two roots have a distance that leaves room for the
// devices below a root.
func pcieAttributes(root int) attributes {
	const rootsPerDomain, busesPerRoot = 16, 16
	name := fmt.Sprintf("pci%04x:%02x", root/rootsPerDomain, root%rootsPerDomain*busesPerRoot)
	return attributes{AttributePCIeRoot: stringAttribute(name)}
}
