// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// AttributeIndex is an attribute for the position of a device in its ring: an int that counts from 0.
const AttributeIndex = "index"

// minRing is the smallest number of devices with two distinct neighbours each.
const minRing = 3

// NewRing returns a closed chain of n devices, at least 3. Each device is linked to the previous and the next one, and the last
// to the first.
//
// An expression that compares differences of indexes treats the ring as a chain: it does not see that devices 0 and n-1 are
// linked.
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
