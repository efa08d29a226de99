// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// AttributeIndex is the place of a device in its ring, an int from 0.
const AttributeIndex = "index"

// minRing is the fewest devices that have two distinct neighbours each.
const minRing = 3

// NewRing wires n devices, at least 3, to a closed chain: each is linked to the
// one before and the one after it, the last to the first.
//
// An expression that compares indices by their difference sees a chain, not a
// ring: {0, n-1} is contiguous all the same.
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
