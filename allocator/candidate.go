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
	// value is the device as CEL constraints see it. There is one value a device,
	// because identity is equality.
	value *device.Device
}

// listCandidates numbers the devices of all pools: pools as given, their slices
// by name, devices as they stand in the slice.
func listCandidates(features structured.Features, pools []*pool) []*candidate {
	var candidates []*candidate
	for _, p := range pools {
		for _, slice := range p.slices {
			for i := range slice.Spec.Devices {
				d := &slice.Spec.Devices[i]
				candidates = append(candidates, &candidate{
					id:       structured.MakeDeviceID(p.driver, p.name, d.Name),
					device:   d,
					slice:    slice,
					pool:     p,
					position: len(candidates),
					shared:   features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
					value:    device.New(p.driver, d),
				})
			}
		}
	}
	return candidates
}
