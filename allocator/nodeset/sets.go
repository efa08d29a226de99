// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel/device"
)

// MaxSets is the maximum number of sets of devices for a pod on a node. Sets that expressions can't distinguish count as one.
const MaxSets = 256

// MaxAllocations is the maximum number of allocations that are examined to list the sets of a pod on a node.
const MaxAllocations = 16384

// MaxSetBytes approximately limits the memory for the sets on all nodes of a group and for the search among them.
const MaxSetBytes = 32 << 20

// Reading describes the properties of nodes and devices that the expressions of a constraint read.
type Reading struct {
	reading
	set  device.ReadSet
	pods device.Pods
}

// ReadingOf returns the properties that the expressions of a group read.
func ReadingOf(prepared *allocator.PreparedClaim) *Reading {
	r := &Reading{reading: readingOf(prepared.Expressions()), set: device.ReadSet{Attributes: map[device.AttributeName]bool{}}}
	for _, e := range prepared.Expressions() {
		read := e.ReadSet()
		r.set.All = r.set.All || read.All
		maps.Copy(r.set.Attributes, read.Attributes)
	}
	r.pods = r.set.Pods()
	return r
}

// Devices reports whether the expressions read the devices of pods. Each node then takes one pod.
func (r *Reading) Devices() bool { return r.devices }

// Slices reports whether the expressions read properties that all devices of a driver on a node have in common ([Node.Slices]).
func (r *Reading) Slices() bool { return r.all || r.capacity || len(r.attributes) > 0 }

// Set is a set of devices that a pod can get on a node.
type Set struct {
	// Results holds one allocation result for each claim.
	Results []resourceapi.AllocationResult
	// devices holds the devices as an attribute value that expressions read.
	devices resourceapi.DeviceAttribute
	// shared lists those devices of the set that pods on other nodes can get, too, and the counters that they consume.
	shared []string
}

// Bytes returns the approximate memory for the set and for its part of the search.
func (s *Set) Bytes() int {
	bytes := 1024 + len(*s.devices.StringValue)
	for i := range s.Results {
		bytes += 256 * len(s.Results[i].Devices.Results)
	}
	return bytes
}

// SetsOn returns the sets of devices that the claims of a pod can get on a node, in the order of the search. has holds the
// devices that the pod already has by other claims. If expressions can't distinguish several sets, SetsOn returns only the
// first of them, unless pods on other nodes can get some of the devices. An error that wraps
// [structured.ErrFailedAllocationOnNode] concerns only the node.
func (r *Reading) SetsOn(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim, has []allocator.AllocatedDevice) ([]Set, error) {
	var sets []Set
	var failure error
	known, looked := map[string]bool{}, 0
	err := a.AllocateEach(ctx, node, claims, r.set, func(allocation allocator.Allocation) bool {
		looked++
		set, err := r.SetOf(has, allocation.Devices)
		if err != nil {
			failure = fmt.Errorf("%s%w", err.Error(), structured.ErrFailedAllocationOnNode)
			return false
		}
		isKnown := false
		if len(set.shared) == 0 {
			isKnown = known[*set.devices.StringValue]
			known[*set.devices.StringValue] = true
		}
		if isKnown && looked < MaxAllocations {
			return true
		}
		if isKnown || len(sets) == MaxSets {
			failure = fmt.Errorf("the pod can get more than %d sets of devices that differ for the expression, or more than %d sets in total: narrow the devices with selectors or constraints in the claim, or read fewer attributes%w",
				MaxSets, MaxAllocations, structured.ErrFailedAllocationOnNode)
			return false
		}
		set.Results = allocation.Results
		sets = append(sets, set)
		return true
	})
	if err = cmp.Or(failure, err); err != nil {
		return nil, err
	}
	return sets, nil
}

// SetOf returns the set that consists of the devices in has and gets. The pod already has the devices in has. A device in gets
// is listed as shared if pods on other nodes can get it, too.
func (r *Reading) SetOf(has, gets []allocator.AllocatedDevice) (s Set, err error) {
	seen := make([]device.OfDriver, 0, len(has)+len(gets))
	for _, d := range slices.Concat(has, gets) {
		own := r.of(d.Slice.Spec.Driver, d.Device)
		seen = append(seen, device.OfDriver{Driver: d.Slice.Spec.Driver, Device: resourceapi.Device{
			Attributes: own.attributes, Capacity: own.capacity, AllowMultipleAllocations: d.AllowMultipleAllocations,
		}})
	}
	for _, d := range gets {
		spec := &d.Slice.Spec
		if spec.NodeName != nil {
			continue
		}
		if !ptr.Deref(spec.PerDeviceNodeSelection, false) || d.NodeName == nil {
			s.shared = append(s.shared, fmt.Sprintf("%s/%s/%s", spec.Driver, spec.Pool.Name, d.Name))
		}
		// Counters belong to the pool, so all nodes that can reach the pool share them.
		for _, consumed := range d.ConsumesCounters {
			s.shared = append(s.shared, fmt.Sprintf("%s/%s#%s", spec.Driver, spec.Pool.Name, consumed.CounterSet))
		}
	}
	s.devices, err = device.NodeDevicesOf(seen)
	return s, err
}

// Published returns the device with its latest slice. If the device is no longer published, the result has no properties.
func Published(result *resourceapi.DeviceRequestAllocationResult, all []*resourceapi.ResourceSlice) allocator.AllocatedDevice {
	none := &resourceapi.ResourceSlice{}
	none.Spec.Driver, none.Spec.Pool.Name = result.Driver, result.Pool
	found := allocator.AllocatedDevice{Device: &resourceapi.Device{Name: result.Device}, Slice: none}
	for _, slice := range all {
		if slice.Spec.Driver != result.Driver || slice.Spec.Pool.Name != result.Pool || slice.Spec.Pool.Generation < found.Slice.Spec.Pool.Generation {
			continue
		}
		for i := range slice.Spec.Devices {
			if slice.Spec.Devices[i].Name == result.Device {
				found = allocator.AllocatedDevice{Device: &slice.Spec.Devices[i], Slice: slice}
			}
		}
	}
	return found
}
