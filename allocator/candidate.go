// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// candidate is a device that the node can use, at its place in the order in
// which devices are tried. It is not modified: searches share it.
type candidate struct {
	id     structured.DeviceID
	device *resourceapi.Device
	slice  *resourceapi.ResourceSlice
	pool   *pool
	// position is the index in inventory.candidates.
	position int
	// shared: the device allows multiple allocations, and the feature is on.
	shared bool
	// ordinary: it is not shared, and has no capacities, counters, taints or conditions,
	// and there is nothing that its node must be able to do.
	ordinary bool
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
		id := structured.MakeDeviceID(p.driver, p.name, "")
		for _, slice := range p.slices {
			for i := range slice.Spec.Devices {
				d := &slice.Spec.Devices[i]
				position := len(candidates)
				// Driver and pool are the same for many devices, and take a look-up each.
				id.Device = draapi.MakeUniqueString(d.Name)
				all[position] = candidate{
					id:       id,
					device:   d,
					slice:    slice,
					pool:     p,
					position: position,
					shared:   features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
				}
				all[position].ordinary = isOrdinary(slice, d) && !all[position].shared
				candidates = append(candidates, &all[position])
			}
		}
	}
	return candidates
}

func isOrdinary(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return len(slice.Spec.SkipNodeOperations) == 0 && len(d.Capacity) == 0 && len(d.ConsumesCounters) == 0 &&
		len(d.Taints) == 0 && len(d.BindingConditions) == 0
}
