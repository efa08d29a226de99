// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// share is an allocation of a shared device of the driver.
type share struct {
	device string
	// pool is pool-1 if empty.
	pool string
	// consumed has names and amounts of capacities. A share may consume none.
	consumed map[string]string
	// unnamed: only the capacity is known, not the share.
	unnamed bool
}

func (s share) addTo(state *structured.AllocatedState) {
	id := structured.MakeDeviceID(driver, cmp.Or(s.pool, "pool-1"), s.device)
	if !s.unnamed {
		if state.AllocatedSharedDeviceIDs == nil {
			state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
		}
		share := types.UID(fmt.Sprintf("share-%d", len(state.AllocatedSharedDeviceIDs)))
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
	}
	if s.consumed == nil {
		return
	}
	consumed := make(map[resourceapi.QualifiedName]resource.Quantity)
	for name, amount := range s.consumed {
		consumed[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
	}
	if state.AggregatedCapacity == nil {
		state.AggregatedCapacity = structured.NewConsumedCapacityCollection()
	}
	state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, consumed))
}

// shared lets a device be allocated several times.
func shared(d *resourceapi.Device) { d.AllowMultipleAllocations = ptr.To(true) }

// amounts are counters by name.
type amounts map[string]string

func (a amounts) counters() map[string]resourceapi.Counter {
	result := make(map[string]resourceapi.Counter, len(a))
	for name, amount := range a {
		result[name] = resourceapi.Counter{Value: resource.MustParse(amount)}
	}
	return result
}

// providing makes a slice of counter sets: of slice 1 of 2 of pool-1.
func providing(name string, sets map[string]amounts) *sliceBuilder {
	return slice(name).pool("pool-1", 1, 2).edit(func(s *resourceapi.ResourceSliceSpec) {
		for _, set := range slices.Sorted(maps.Keys(sets)) {
			s.SharedCounters = append(s.SharedCounters, resourceapi.CounterSet{Name: set, Counters: sets[set].counters()})
		}
	})
}

// consuming lets a device consume counters of a counter set.
func consuming(set string, consumed amounts, groups ...string) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourceapi.DeviceCounterConsumption{
			CounterSet: set, Counters: consumed.counters(), CompatibilityGroups: groups,
		})
	}
}

// onAny lets a device of a slice with node selection per device be used anywhere.
func onAny(d *resourceapi.Device) { d.AllNodes = ptr.To(true) }

// elsewhere is the opposite.
func elsewhere(d *resourceapi.Device) { d.NodeName = ptr.To("node-2") }

// partitioned makes the two slices of a pool with one counter set: "gpu" with an
// amount of memory.
func partitioned(memory string, devices ...resourceapi.Device) []*sliceBuilder {
	return []*sliceBuilder{
		providing("counters", map[string]amounts{"gpu": {"memory": memory}}),
		slice("devices", devices...).pool("pool-1", 1, 2),
	}
}

// part is a device that consumes that much memory of the counter set "gpu".
func part(name, memory string, groups ...string) resourceapi.Device {
	return newDevice(name, nil, consuming("gpu", amounts{"memory": memory}, groups...))
}
