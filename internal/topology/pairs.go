// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import "fmt"

// AttributeBridge is a string attribute with the name of a device's bridge, such as "bridge-0". Exactly two devices share a
// bridge.
const AttributeBridge = "bridge"

// NewBridgePairs returns n devices, linked in pairs: 0 with 1, 2 with 3 and so on. n must be even.
func NewBridgePairs(family Family, n int) (Topology, error) {
	if err := checkCount("devices", n, 2, MaxDevices); err != nil {
		return Topology{}, fmt.Errorf("bridge pairs: %w", err)
	}
	if n%2 != 0 {
		return Topology{}, fmt.Errorf("bridge pairs: devices: must be an even number, is %d", n)
	}
	if err := family.validate(n); err != nil {
		return Topology{}, fmt.Errorf("bridge pairs: %w", err)
	}
	devices := make([]Device, n)
	links := make([][2]int, n/2)
	for i := range n {
		pair := i / 2
		devices[i] = family.device(i, Coordinates{Row: pair, Col: i % 2}, attributes{
			AttributeBridge: stringAttribute(fmt.Sprintf("bridge-%d", pair)),
		})
		links[pair] = [2]int{2 * pair, 2*pair + 1}
	}
	connect(devices, links)
	return Topology{Kind: BridgePairs, Devices: devices}, nil
}
