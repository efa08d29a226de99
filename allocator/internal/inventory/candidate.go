// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Candidate is a device that the node can use, at its place in the order in
// which devices are tried. It is not modified: searches share it.
type Candidate struct {
	ID     structured.DeviceID
	Device *resourceapi.Device
	Slice  *resourceapi.ResourceSlice
	Pool   *Pool
	// Position is the index in Inventory.Candidates.
	Position int
	// Shared: the device allows multiple allocations, and the feature is on.
	Shared bool
	// Ordinary: it is not shared, and has no capacities, counters, taints or conditions,
	// and there is nothing that its node must be able to do.
	Ordinary bool
}

// SelectsNodes tells whether the slice leaves it to devices to say for which nodes they are.
func (c *Candidate) SelectsNodes() bool { return selectsByDevice(c.Slice) }

// IsFor tells whether the device is for the node, which is known of others than those that
// select nodes themselves. The error is one of the device's node selector.
func (c *Candidate) IsFor(features structured.Features, node *v1.Node) (bool, error) {
	if !c.SelectsNodes() {
		return true, nil
	}
	return deviceMatches(features, node, c.Device)
}

// listCandidates numbers the devices of all pools: pools as given, their slices
// by name, devices as they stand in the slice.
func listCandidates(features structured.Features, pools []*Pool) []*Candidate {
	count := 0
	for _, p := range pools {
		for _, slice := range p.Slices {
			count += len(slice.Spec.Devices)
		}
	}
	all := make([]Candidate, count)
	candidates := make([]*Candidate, 0, count)
	for _, p := range pools {
		id := structured.MakeDeviceID(p.Driver, p.Name, "")
		for _, slice := range p.Slices {
			for i := range slice.Spec.Devices {
				d := &slice.Spec.Devices[i]
				position := len(candidates)
				// Driver and pool are the same for many devices, and take a look-up each.
				id.Device = draapi.MakeUniqueString(d.Name)
				all[position] = Candidate{
					ID:       id,
					Device:   d,
					Slice:    slice,
					Pool:     p,
					Position: position,
					Shared:   features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
				}
				all[position].Ordinary = isOrdinary(slice, d) && !all[position].Shared
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
