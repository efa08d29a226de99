// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel/device"
)

// candidate is a device that the node can use, at its place in the order in
// which devices are tried.
type candidate struct {
	id     structured.DeviceID
	device *resourceapi.Device
	slice  *resourceapi.ResourceSlice
	pool   *pool
	// position is the index in search.candidates.
	position int
	// shared: the device allows multiple allocations, and the feature is on.
	shared bool
	// seen is the device as CEL constraints see it, nil until one does.
	seen *device.Device
}

// value is the device as CEL constraints see it. There is one value a device,
// because identity is equality.
func (c *candidate) value() *device.Device {
	if c.seen == nil {
		c.seen = device.New(c.pool.driver, c.device)
	}
	return c.seen
}

// listCandidates numbers the devices of all pools: pools as given, their slices
// by name, devices as they stand in the slice.
func listCandidates(features structured.Features, pools []*pool) []*candidate {
	count := 0
	for _, p := range pools {
		for _, slice := range p.slices {
			count += len(slice.Spec.Devices)
		}
	}
	all := make([]candidate, count)
	candidates := make([]*candidate, 0, count)
	for _, p := range pools {
		for _, slice := range p.slices {
			for i := range slice.Spec.Devices {
				d := &slice.Spec.Devices[i]
				position := len(candidates)
				all[position] = candidate{
					id:       structured.MakeDeviceID(p.driver, p.name, d.Name),
					device:   d,
					slice:    slice,
					pool:     p,
					position: position,
					shared:   features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
				}
				candidates = append(candidates, &all[position])
			}
		}
	}
	return candidates
}
