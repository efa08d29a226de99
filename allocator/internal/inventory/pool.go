// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/compat"
	celcompat "github.com/celset/celset/cel/compat"
)

// ID identifies a pool. Pools of different drivers may have the same name.
type ID struct {
	Driver, Name string
}

// String returns driver and name.
func (id ID) String() string { return id.Driver + "/" + id.Name }

// Pool is a pool as one node sees it: the slices of the latest generation that has something for the node.
type Pool struct {
	ID
	// Incomplete is true if slices of the generation are not published yet. The pool's devices can't be used, so
	// Slices is empty.
	Incomplete bool
	// Invalid is the reason why the pool is invalid, or "". The devices of an invalid pool can't be used, so Slices is empty.
	Invalid string
	// Slices holds the slices with devices that the node can use, sorted by name.
	Slices []*resourceapi.ResourceSlice
	// elsewhere holds the slices whose devices only other nodes can use. These devices may consume the same counters.
	elsewhere []*resourceapi.ResourceSlice
	// CounterSets maps the name of a counter set to its counters by name.
	CounterSets map[string]map[string]resourceapi.Counter
}

// Len returns the number of devices in Slices.
func (p *Pool) Len() int {
	devices := 0
	for _, slice := range p.Slices {
		devices += len(slice.Spec.Devices)
	}
	return devices
}

// EachDevice calls f for each device of the pool, including devices that only other nodes can use.
func (p *Pool) EachDevice(f func(*resourceapi.ResourceSlice, *resourceapi.Device)) {
	for _, slices := range [][]*resourceapi.ResourceSlice{p.Slices, p.elsewhere} {
		for _, slice := range slices {
			for i := range slice.Spec.Devices {
				f(slice, &slice.Spec.Devices[i])
			}
		}
	}
}

// Gather returns the pools with devices for the node, in the order of the search: by driver and name, except that pools with
// binding conditions come last. Drivers rely on this order, because it lets them prioritize devices by the names of pools.
//
// selfContained is true if slices for other nodes would not change the result.
func Gather(features structured.Features, node *v1.Node, candidates, all []*resourceapi.ResourceSlice) (pools []*Pool, selfContained bool, err error) {
	relevant := make(map[ID][]*resourceapi.ResourceSlice)
	for _, slice := range candidates {
		if !supported(features, slice) {
			continue
		}
		matches, err := sliceMatches(features, node, slice)
		if err != nil {
			return nil, false, err
		}
		if matches {
			addLatest(relevant, slice)
		}
	}
	selfContained = true
	for id, poolSlices := range relevant {
		selfContained = selfContained && isComplete(poolSlices)
		if p := newPool(features, id, poolSlices, all); p != nil {
			pools = append(pools, p)
		}
	}
	slices.SortFunc(pools, comparePools)
	return pools, selfContained, nil
}

// supported reports whether a slice can be used with the features that are on. A slice with compatibility groups counts as not
// published if that feature is off, so its pool is incomplete. Other unsupported slices are not used, but count as published,
// as in upstream's allocator.
func supported(features structured.Features, slice *resourceapi.ResourceSlice) bool {
	if !features.PartitionableDevices && (slice.Spec.PerDeviceNodeSelection != nil || len(slice.Spec.SharedCounters) > 0) {
		return false
	}
	return *celcompat.CompatibilityGroups(&features) || !usesCompatibilityGroups(slice)
}

func usesCompatibilityGroups(slice *resourceapi.ResourceSlice) bool {
	for i := range slice.Spec.Devices {
		for j := range slice.Spec.Devices[i].ConsumesCounters {
			if len(compat.CompatibilityGroups(&slice.Spec.Devices[i].ConsumesCounters[j])) > 0 {
				return true
			}
		}
	}
	return false
}

// sliceMatches reports whether a slice may have devices for the node. It returns false for an unknown kind of node selection.
func sliceMatches(features structured.Features, node *v1.Node, slice *resourceapi.ResourceSlice) (bool, error) {
	spec := &slice.Spec
	if ptr.Deref(spec.NodeName, "") != "" || ptr.Deref(spec.AllNodes, false) || spec.NodeSelector != nil {
		matches, err := structured.NodeMatches(features, node, ptr.Deref(spec.NodeName, ""), ptr.Deref(spec.AllNodes, false), spec.NodeSelector)
		if err != nil {
			return false, fmt.Errorf("ResourceSlice %s: node selection: %w", slice.Name, err)
		}
		return matches, nil
	}
	if !ptr.Deref(spec.PerDeviceNodeSelection, false) {
		return false, nil
	}
	for i := range spec.Devices {
		matches, err := deviceMatches(features, node, &spec.Devices[i])
		if err != nil {
			return false, fmt.Errorf("ResourceSlice %s: device %s: node selection: %w", slice.Name, spec.Devices[i].Name, err)
		}
		if matches {
			return true, nil
		}
	}
	return false, nil
}

// deviceMatches reports whether the node can use a device of a slice with perDeviceNodeSelection.
func deviceMatches(features structured.Features, node *v1.Node, device *resourceapi.Device) (bool, error) {
	return structured.NodeMatches(features, node, ptr.Deref(device.NodeName, ""), ptr.Deref(device.AllNodes, false), device.NodeSelector)
}

// addLatest adds the slice to its pool, and keeps only the slices of the highest generation.
func addLatest(pools map[ID][]*resourceapi.ResourceSlice, slice *resourceapi.ResourceSlice) {
	id := ID{Driver: slice.Spec.Driver, Name: slice.Spec.Pool.Name}
	known := pools[id]
	if len(known) > 0 && slice.Spec.Pool.Generation < known[0].Spec.Pool.Generation {
		return
	}
	if len(known) > 0 && slice.Spec.Pool.Generation > known[0].Spec.Pool.Generation {
		known = nil
	}
	pools[id] = append(known, slice)
}

// newPool returns the pool, which may be incomplete or invalid. It returns nil if the slices for the node are not complete and
// other nodes have a newer generation.
func newPool(features structured.Features, id ID, forNode, all []*resourceapi.ResourceSlice) *Pool {
	p := &Pool{ID: id}
	published := forNode
	// Usually all slices of a pool are for one node. Otherwise search the slices of all nodes, which is expensive.
	if !isComplete(forNode) {
		var obsolete bool
		published, obsolete = generation(all, id, forNode[0].Spec.Pool.Generation)
		if obsolete {
			return nil
		}
		if p.Invalid = contradictoryCount(published); p.Invalid != "" {
			return p
		}
		if !*celcompat.CompatibilityGroups(&features) {
			published = slices.DeleteFunc(published, usesCompatibilityGroups)
		}
		if p.Incomplete = !isComplete(published); p.Incomplete {
			return p
		}
	}
	slices.SortFunc(forNode, func(a, b *resourceapi.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	p.fill(features, forNode, published)
	return p
}

// isComplete reports whether each of these slices of one generation declares their number in resourceSliceCount.
func isComplete(slices []*resourceapi.ResourceSlice) bool {
	for _, slice := range slices {
		if slice.Spec.Pool.ResourceSliceCount != int64(len(slices)) {
			return false
		}
	}
	return len(slices) > 0
}

// generation returns the slices of one generation of a pool on all nodes. obsolete is true if a newer generation exists.
func generation(all []*resourceapi.ResourceSlice, id ID, generation int64) (published []*resourceapi.ResourceSlice, obsolete bool) {
	for _, slice := range all {
		switch {
		case slice.Spec.Driver != id.Driver || slice.Spec.Pool.Name != id.Name:
		case slice.Spec.Pool.Generation > generation:
			return nil, true
		case slice.Spec.Pool.Generation == generation:
			published = append(published, slice)
		}
	}
	return published, false
}

// fill sets the fields of a complete pool, or Invalid if the slices contradict each other.
func (p *Pool) fill(features structured.Features, forNode, published []*resourceapi.ResourceSlice) {
	holdsCounters := func(slice *resourceapi.ResourceSlice) bool {
		return features.PartitionableDevices && len(slice.Spec.SharedCounters) > 0
	}
	names := sets.New[string]()
	var withDevices, withCounters, elsewhere []*resourceapi.ResourceSlice
	for _, slice := range forNode {
		names.Insert(slice.Name)
		if holdsCounters(slice) {
			withCounters = append(withCounters, slice)
		} else {
			withDevices = append(withDevices, slice)
		}
	}
	if len(forNode) < len(published) {
		for _, slice := range published {
			switch {
			case names.Has(slice.Name):
			case holdsCounters(slice):
				withCounters = append(withCounters, slice)
			default:
				elsewhere = append(elsewhere, slice)
			}
		}
	}
	if p.Invalid = duplicateDevice(withDevices); p.Invalid != "" {
		return
	}
	if features.PartitionableDevices {
		counterSets, invalid := counterSetsOf(withCounters, slices.Concat(withDevices, elsewhere))
		if p.Invalid = invalid; invalid != "" {
			return
		}
		p.CounterSets, p.elsewhere = counterSets, elsewhere
	}
	p.Slices = withDevices
}

func (p *Pool) hasBindingConditions() bool {
	for _, slice := range p.Slices {
		for i := range slice.Spec.Devices {
			if slice.Spec.Devices[i].BindingConditions != nil {
				return true
			}
		}
	}
	return false
}

func comparePools(a, b *Pool) int {
	last := func(p *Pool) int {
		if p.hasBindingConditions() {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(last(a), last(b)),
		cmp.Compare(a.Driver, b.Driver),
		cmp.Compare(a.Name, b.Name),
	)
}

// A pool is valid if its slices declare the same number of slices, its device names are unique, and each consumed counter is
// defined exactly once. The API server can't check this, because slices are separate objects.

// contradictoryCount returns a reason if slices of one generation declare different numbers of slices, and "" otherwise.
func contradictoryCount(published []*resourceapi.ResourceSlice) string {
	for _, slice := range published {
		if slice.Spec.Pool.ResourceSliceCount != published[0].Spec.Pool.ResourceSliceCount {
			return "resourceSliceCount is not the same in all slices"
		}
	}
	return ""
}

func duplicateDevice(slices []*resourceapi.ResourceSlice) string {
	count := 0
	for _, slice := range slices {
		count += len(slice.Spec.Devices)
	}
	names := make(sets.Set[string], count)
	for _, slice := range slices {
		for i := range slice.Spec.Devices {
			name, before := slice.Spec.Devices[i].Name, len(names)
			if names[name] = (sets.Empty{}); len(names) == before {
				return "duplicate device name " + name
			}
		}
	}
	return ""
}

// counterSetsOf returns the counter sets of a pool. invalid is the reason if a counter is undefined or defined twice, or "".
func counterSetsOf(withCounters, withDevices []*resourceapi.ResourceSlice) (counterSets map[string]map[string]resourceapi.Counter, invalid string) {
	counterSets = make(map[string]map[string]resourceapi.Counter)
	for _, slice := range withCounters {
		for _, counterSet := range slice.Spec.SharedCounters {
			if _, found := counterSets[counterSet.Name]; found {
				return nil, "duplicate counter set name " + counterSet.Name
			}
			counterSets[counterSet.Name] = counterSet.Counters
		}
	}
	for _, slice := range withDevices {
		for i := range slice.Spec.Devices {
			for _, consumption := range slice.Spec.Devices[i].ConsumesCounters {
				if reason := undefinedCounter(counterSets, consumption); reason != "" {
					return nil, reason
				}
			}
		}
	}
	return counterSets, ""
}

func undefinedCounter(counterSets map[string]map[string]resourceapi.Counter, consumption resourceapi.DeviceCounterConsumption) string {
	counters, found := counterSets[consumption.CounterSet]
	if !found {
		return fmt.Sprintf("counter set %s not found", consumption.CounterSet)
	}
	for name := range consumption.Counters {
		if _, found := counters[name]; !found {
			return fmt.Sprintf("counter %s not found in counter set %s", name, consumption.CounterSet)
		}
	}
	return ""
}

// Whole returns a pool with the slices of its latest generation for all nodes. published must contain only slices of the pool.
// Whole returns nil if no slice is supported.
//
// Whole does not check whether the names of devices are unique, because they must be unique only for each node.
func Whole(features structured.Features, id ID, published []*resourceapi.ResourceSlice) *Pool {
	pools := map[ID][]*resourceapi.ResourceSlice{}
	for _, slice := range published {
		if supported(features, slice) {
			addLatest(pools, slice)
		}
	}
	latest := pools[id]
	if len(latest) == 0 {
		return nil
	}
	p := &Pool{ID: id}
	if p.Invalid = contradictoryCount(latest); p.Invalid != "" {
		p.elsewhere = latest
		return p
	}
	if p.Incomplete = !isComplete(latest); p.Incomplete {
		p.elsewhere = latest
		return p
	}
	p.fill(features, nil, latest)
	if p.Invalid != "" {
		p.elsewhere = latest
	}
	return p
}
