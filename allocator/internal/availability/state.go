// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"maps"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
)

// State holds the allocations at the time when the allocator was made. It has an index of shared devices, because a device may
// have many shares and searches look up the device as a whole.
type State struct {
	structured.AllocatedState
	// sharedDevices returns the devices with allocated shares. The set is computed at the first call, because most claims don't
	// need it and it is as large as the cluster.
	sharedDevices func() sets.Set[structured.DeviceID]
	// pools returns the devices in use by pool. They are computed at the first call.
	pools func() *Pools
	// givenBack holds devices in AllocatedDevices that are no longer in use. This small set avoids a copy of the large set.
	givenBack sets.Set[structured.DeviceID]
}

// Nothing returns a state without allocations. Its sets are empty but not nil.
func Nothing() structured.AllocatedState {
	return structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}

// NewState returns the allocations with their indexes.
func NewState(state structured.AllocatedState) *State {
	s := &State{AllocatedState: state}
	s.sharedDevices = sync.OnceValue(func() sets.Set[structured.DeviceID] {
		devices := sets.New[structured.DeviceID]()
		for share := range state.AllocatedSharedDeviceIDs {
			devices.Insert(share.GetDeviceID())
		}
		for device := range state.AggregatedCapacity {
			devices.Insert(device)
		}
		return devices
	})
	s.pools = sync.OnceValue(s.sortByPool)
	return s
}

// hasUnpublished reports whether a device in use of the pool is no longer published.
func (s *State) hasUnpublished(p *inventory.Pool) bool {
	inUse := s.pools().inUse(poolID{draapi.MakeUniqueString(p.Driver), draapi.MakeUniqueString(p.Name)})
	if len(inUse) == 0 {
		return false
	}
	published := sets.New[string]()
	p.EachDevice(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) { published.Insert(d.Name) })
	return slices.ContainsFunc(inUse, func(device draapi.UniqueString) bool { return !published.Has(device.String()) })
}

// Without returns the state after claims have given back the devices and shares in given. All of them must be in use.
func (s *State) Without(given structured.AllocatedState) *State {
	rest := s.AllocatedState
	if len(given.AllocatedSharedDeviceIDs) > 0 {
		rest.AllocatedSharedDeviceIDs = rest.AllocatedSharedDeviceIDs.Difference(given.AllocatedSharedDeviceIDs)
	}
	if len(given.AggregatedCapacity) > 0 {
		rest.AggregatedCapacity = maps.Clone(rest.AggregatedCapacity)
		for id, consumed := range given.AggregatedCapacity {
			if before, ok := rest.AggregatedCapacity[id]; ok {
				rest.AggregatedCapacity[id] = before.Clone()
				rest.AggregatedCapacity.Remove(structured.DeviceConsumedCapacity{DeviceID: id, ConsumedCapacity: consumed})
			}
		}
	}
	result := NewState(rest)
	result.givenBack = s.givenBack.Union(given.AllocatedDevices)
	return result
}

// With returns the state after claims have also got the devices and shares in taken.
func (s *State) With(taken structured.AllocatedState) *State {
	all := structured.AllocatedState{
		AllocatedDevices:         s.Exclusive().Union(taken.AllocatedDevices),
		AllocatedSharedDeviceIDs: s.AllocatedSharedDeviceIDs.Union(taken.AllocatedSharedDeviceIDs),
		AggregatedCapacity:       s.AggregatedCapacity.Clone(),
	}
	for id, consumed := range taken.AggregatedCapacity {
		amounts := make(map[resourceapi.QualifiedName]resource.Quantity, len(consumed))
		for name, amount := range consumed {
			amounts[name] = amount.DeepCopy()
		}
		all.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, amounts))
	}
	return NewState(all)
}

// Exclusive returns the devices that are in use as a whole.
func (s *State) Exclusive() sets.Set[structured.DeviceID] {
	if len(s.givenBack) == 0 {
		return s.AllocatedDevices.Clone()
	}
	return s.AllocatedDevices.Difference(s.givenBack)
}

// isTaken reports whether the candidate can't be allocated, not even in part.
func (s *State) isTaken(c *inventory.Candidate) bool {
	return s.IsExclusive(c.ID) || !c.Shared && s.IsShared(c.ID)
}

// IsExclusive reports whether the device is in use as a whole.
func (s *State) IsExclusive(id structured.DeviceID) bool {
	return s.AllocatedDevices.Has(id) && !s.givenBack.Has(id)
}

// Of returns the positions of candidates that can't be allocated: devices that are allocated exclusively, and devices with
// allocated shares that don't allow multiple allocations any more.
func (s *State) Of(candidates []*inventory.Candidate) bitset.Set {
	allocated := bitset.New(len(candidates))
	if len(s.AllocatedDevices) == 0 && !s.HasShared() {
		return allocated
	}
	for i, c := range candidates {
		if s.isTaken(c) {
			allocated.Add(i)
		}
	}
	return allocated
}

// HasShared reports whether shares of any device are allocated.
func (s *State) HasShared() bool {
	return len(s.AllocatedSharedDeviceIDs) > 0 || len(s.AggregatedCapacity) > 0
}

// IsShared reports whether shares of the device are allocated, with or without capacity.
func (s *State) IsShared(id structured.DeviceID) bool {
	return s.HasShared() && s.sharedDevices().Has(id)
}

// IsAllocated reports whether the device or a share of it is in use.
func (s *State) IsAllocated(id structured.DeviceID) bool {
	return s.IsExclusive(id) || s.IsShared(id)
}

// Pools holds the devices that are in use as a whole or in part, by pool. Pools.Of is faster than [State.Of] if it is called
// for most nodes of a cluster, because it does not look up each device in a map of the whole cluster.
type Pools struct {
	state *State
	// devices lists the devices in use, one pool after the other. ranges maps a pool to its range in devices.
	devices []draapi.UniqueString
	ranges  map[poolID]*stretch
}

type poolID struct{ driver, name draapi.UniqueString }

type stretch struct{ from, to int32 }

// Pools returns the devices in use by pool. They are computed only once.
func (s *State) Pools() *Pools { return s.pools() }

func (s *State) sortByPool() *Pools {
	type inUse struct {
		pool   *stretch
		device draapi.UniqueString
	}
	p := &Pools{state: s, ranges: make(map[poolID]*stretch)}
	all := make([]inUse, 0, len(s.AllocatedDevices))
	add := func(id structured.DeviceID) {
		pool := p.ranges[poolID{id.Driver, id.Pool}]
		if pool == nil {
			pool = &stretch{}
			p.ranges[poolID{id.Driver, id.Pool}] = pool
		}
		pool.to++
		all = append(all, inUse{pool, id.Device})
	}
	for id := range s.AllocatedDevices {
		if !s.givenBack.Has(id) {
			add(id)
		}
	}
	if s.HasShared() {
		for id := range s.sharedDevices() {
			add(id)
		}
	}
	from := int32(0)
	for _, pool := range p.ranges {
		pool.from, from = from, from+pool.to
		pool.to = pool.from
	}
	p.devices = make([]draapi.UniqueString, len(all))
	for _, d := range all {
		p.devices[d.pool.to] = d.device
		d.pool.to++
	}
	return p
}

// inUse returns the devices of a pool that are in use.
func (p *Pools) inUse(id poolID) []draapi.UniqueString {
	if pool := p.ranges[id]; pool != nil {
		return p.devices[pool.from:pool.to]
	}
	return nil
}

// manyComparisons is the number of comparisons of names above which looking up each device is faster.
const manyComparisons = 1 << 14

// Of returns the positions of candidates that can't be allocated, like [State.Of].
func (p *Pools) Of(has *inventory.Inventory) bitset.Set {
	allocated := bitset.New(len(has.Candidates))
	for from := 0; from < len(has.Candidates); {
		first := has.Candidates[from]
		to := from + first.Pool.Len()
		if p.state.HasShared() {
			p.lookUp(allocated, has.Candidates[from:to])
		} else {
			p.join(allocated, has.Candidates[from:to], p.inUse(poolID{first.ID.Driver, first.ID.Pool}))
		}
		from = to
	}
	return allocated
}

func (p *Pools) join(allocated bitset.Set, candidates []*inventory.Candidate, inUse []draapi.UniqueString) {
	if len(candidates)*len(inUse) > manyComparisons {
		p.lookUp(allocated, candidates)
		return
	}
	for _, c := range candidates {
		for _, device := range inUse {
			if device == c.ID.Device {
				allocated.Add(c.Position)
				break
			}
		}
	}
}

// lookUp adds the positions of candidates that can't be allocated. It looks up each candidate in the state.
func (p *Pools) lookUp(allocated bitset.Set, candidates []*inventory.Candidate) {
	for _, c := range candidates {
		if p.state.isTaken(c) {
			allocated.Add(c.Position)
		}
	}
}
