// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// AttributeIndex is the position of a device in its ring, an int from 0.
const AttributeIndex = "index"

// minRing is the smallest number of devices with two distinct neighbours each.
const minRing = 3

// NewRing wires n devices, at least 3, to a closed chain. Each device is linked to the previous and the next, the last to the
// first.
//
// An expression that compares differences of indices sees a chain instead of a ring, although {0, n-1} is contiguous.
func NewRing(family Family, n int) (Topology, error) {
	if err := checkCount("devices", n, minRing, MaxDevices); err != nil {
		return Topology{}, fmt.Errorf("ring: %w", err)
	}
	if err := family.validate(n); err != nil {
		return Topology{}, fmt.Errorf("ring: %w", err)
	}
	devices := make([]Device, n)
	links := make([][2]int, n)
	for i := range n {
		devices[i] = family.device(i, Coordinates{Col: i}, attributes{AttributeIndex: intAttribute(i)})
		links[i] = [2]int{i, (i + 1) % n}
	}
	connect(devices, links)
	return Topology{Kind: Ring, Devices: devices}, nil
}
