// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// A pool is a pool of devices as one node sees it.
type pool struct {
	driver, name string
	// A pool that is incomplete or invalid has no devices.
	incomplete, invalid bool
	devices             []*device
	// published holds the devices for all nodes. sets holds the counter sets for all nodes.
	published []*device
	sets      []resourceapi.CounterSet
}

// A device is a device that the node can use.
type device struct {
	*resourceapi.Device
	id    structured.DeviceID
	slice *resourceapi.ResourceSlice
	pool  *pool
	// shared is true if the device can be allocated more than once.
	shared bool
	// value is the device as a map for CEL. It is nil until the first expression reads the device.
	value map[string]any
}

// visiblePools returns the pools that have a slice for the node. Pools with binding conditions come last. Otherwise pools are
// sorted by driver and name, as in the search.
func visiblePools(p *Problem) []*pool {
	var pools []*pool
	for _, key := range poolKeys(p) {
		if pool, exists := visiblePool(p, key[0], key[1]); exists {
			pools = append(pools, pool)
		}
	}
	slices.SortStableFunc(pools, func(a, b *pool) int { return cmp.Compare(a.rank(), b.rank()) })
	return pools
}

func (p *pool) rank() int {
	if slices.ContainsFunc(p.devices, func(d *device) bool { return d.BindingConditions != nil }) {
		return 1
	}
	return 0
}

func poolKeys(p *Problem) [][2]string {
	keys := sets.New[[2]string]()
	for _, slice := range p.Slices {
		keys.Insert([2]string{slice.Spec.Driver, slice.Spec.Pool.Name})
	}
	return slices.SortedFunc(slices.Values(keys.UnsortedList()), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}

// visiblePool returns a pool as the node sees it. It returns false if no slice of the pool is for the node. It also returns
// false if the generation for the node is incomplete and the pool has a newer generation on other nodes.
func visiblePool(p *Problem, driver, name string) (*pool, bool) {
	result := &pool{driver: driver, name: name}
	all := slicesOf(p, driver, name)
	here := latest(slices.DeleteFunc(slices.Clone(all), func(s *resourceapi.ResourceSlice) bool { return !forNode(p, s) }))
	if len(here) == 0 {
		return result, false
	}
	generation, want := here[0].Spec.Pool.Generation, int(here[0].Spec.Pool.ResourceSliceCount)
	published := here
	if slices.ContainsFunc(here, func(s *resourceapi.ResourceSlice) bool { return int(s.Spec.Pool.ResourceSliceCount) != len(here) }) {
		if latest(all)[0].Spec.Pool.Generation > generation {
			return result, false
		}
		published = latest(all)
	}
	switch {
	case slices.ContainsFunc(published, func(s *resourceapi.ResourceSlice) bool { return int(s.Spec.Pool.ResourceSliceCount) != want }):
		result.invalid = true
	case len(published) != want:
		result.incomplete = true
	case contradictory(p, here, published):
		result.invalid = true
	default:
		result.devices, result.published = devicesOf(p, here), devicesOf(p, published)
		for _, d := range result.devices {
			d.pool = result
		}
		for _, slice := range published {
			result.sets = append(result.sets, slice.Spec.SharedCounters...)
		}
	}
	return result, true
}

// slicesOf returns the slices of a pool. Slices with a node name come first.
func slicesOf(p *Problem, driver, name string) []*resourceapi.ResourceSlice {
	var local, shared []*resourceapi.ResourceSlice
	for _, slice := range p.Slices {
		switch {
		case slice.Spec.Driver != driver || slice.Spec.Pool.Name != name:
		case ptr.Deref(slice.Spec.NodeName, "") != "":
			local = append(local, slice)
		default:
			shared = append(shared, slice)
		}
	}
	return append(local, shared...)
}

// latest returns the slices of the highest generation.
func latest(all []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice {
	var result []*resourceapi.ResourceSlice
	for _, slice := range all {
		newest := !slices.ContainsFunc(all, func(other *resourceapi.ResourceSlice) bool {
			return other.Spec.Pool.Generation > slice.Spec.Pool.Generation
		})
		if newest {
			result = append(result, slice)
		}
	}
	return result
}

// forNode reports whether the node can use the slice or some of its devices. It can't if the slice needs a disabled feature.
func forNode(p *Problem, slice *resourceapi.ResourceSlice) bool {
	spec := &slice.Spec
	if !p.Features.PartitionableDevices && (spec.PerDeviceNodeSelection != nil || len(spec.SharedCounters) > 0) {
		return false
	}
	if !ptr.Deref(spec.PerDeviceNodeSelection, false) {
		return matches(p.Node, spec.NodeName, spec.AllNodes, spec.NodeSelector)
	}
	return slices.ContainsFunc(spec.Devices, func(d resourceapi.Device) bool {
		return matches(p.Node, d.NodeName, d.AllNodes, d.NodeSelector)
	})
}

func matches(node *v1.Node, name *string, all *bool, selector *v1.NodeSelector) bool {
	if ptr.Deref(name, "") != "" {
		return *name == node.Name
	}
	if ptr.Deref(all, false) || selector == nil {
		return ptr.Deref(all, false)
	}
	matches, err := nodeaffinity.NewLazyErrorNodeSelector(selector).Match(node)
	return matches && err == nil
}

func holdsCounters(p *Problem, slice *resourceapi.ResourceSlice) bool {
	return p.Features.PartitionableDevices && len(slice.Spec.SharedCounters) > 0
}

// contradictory reports whether two devices for the node have the same name, or whether any node's counters are defined twice
// or consumed without a definition.
func contradictory(p *Problem, here, published []*resourceapi.ResourceSlice) bool {
	names := sets.New[string]()
	for _, d := range devicesOf(p, here) {
		if names.Has(d.Name) {
			return true
		}
		names.Insert(d.Name)
	}
	return p.Features.PartitionableDevices && contradictoryCounters(p, published)
}

func contradictoryCounters(p *Problem, published []*resourceapi.ResourceSlice) bool {
	defined := sets.New[string]()
	for _, slice := range published {
		for _, set := range slice.Spec.SharedCounters {
			if defined.Has(set.Name) {
				return true
			}
			defined.Insert(set.Name)
			for counter := range set.Counters {
				defined.Insert(set.Name + "/" + counter)
			}
		}
	}
	for _, d := range devicesOf(p, published) {
		for _, consumption := range d.ConsumesCounters {
			for counter := range consumption.Counters {
				if !defined.Has(consumption.CounterSet + "/" + counter) {
					return true
				}
			}
		}
	}
	return false
}

// devicesOf returns the devices of the slices. Slices are sorted by name, and the devices of a slice keep their order.
func devicesOf(p *Problem, from []*resourceapi.ResourceSlice) []*device {
	sorted := slices.SortedFunc(slices.Values(from), func(a, b *resourceapi.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	var devices []*device
	for _, slice := range sorted {
		if holdsCounters(p, slice) {
			continue
		}
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			devices = append(devices, &device{Device: d, slice: slice,
				shared: p.Features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false),
				id:     structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)})
		}
	}
	return devices
}
