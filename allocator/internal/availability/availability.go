// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package availability tracks which devices of a node are available, and how much of them. A device can be in use, share
// counters with devices in use, or have allocated shares. It takes into account the allocations from before the search
// ([State]) and the allocations of the search itself ([Availability]).
//
// The allocations of the search are a stack: giving back the last device restores the previous state.
package availability

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/counter"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/apis/compat"
	celcompat "github.com/celset/celset/cel/compat"
	"github.com/celset/celset/cel/device/bitset"
)

// Availability tracks which devices are available during a search. The state holds the allocations from before the search.
type Availability struct {
	features structured.Features
	node     *v1.Node
	state    *State
	// allocated holds the positions of devices used exclusively by earlier allocations, and taken of devices taken by the search.
	allocated, taken bitset.Set
	// owners is a stack of the devices that the search has taken exclusively. Only with admin access a device has several owners.
	owners []owner
	// shares maps the position of a shared device to a stack: the amounts that each allocation of the search consumes.
	shares map[int][]capacity.Amounts
	// charged holds the positions of shared devices whose counters the search has taken. Admin access takes no counters.
	charged map[int]bool
	// counters and groups have an entry for each pool that the search has needed so far.
	counters map[*inventory.Pool]*counter.Counters
	groups   map[*inventory.Pool]*counter.Groups
	// unpublished has an entry for each pool that the search has needed. It is true if a device in use is no longer published.
	unpublished map[*inventory.Pool]bool
}

// owner is a claim with a device that the search has taken for it.
type owner struct{ position, claim int }

// New returns the availability of the devices of a node. allocated holds the positions of devices that earlier allocations use
// exclusively. devices is the number of devices.
func New(features structured.Features, node *v1.Node, state *State, allocated bitset.Set, devices int) *Availability {
	return &Availability{
		features:    features,
		node:        node,
		state:       state,
		allocated:   allocated,
		taken:       bitset.New(devices),
		shares:      make(map[int][]capacity.Amounts),
		charged:     make(map[int]bool),
		counters:    make(map[*inventory.Pool]*counter.Counters),
		groups:      make(map[*inventory.Pool]*counter.Groups),
		unpublished: make(map[*inventory.Pool]bool),
	}
}

// InUse reports whether the request can't get the device because the device is in use. Admin access ignores other users of a
// device, but a claim gets a device only once.
func (a *Availability) InUse(claim int, r *requests.Request, c *inventory.Candidate) bool {
	if !r.AdminAccess() {
		return a.allocated.Has(c.Position) || a.taken.Has(c.Position)
	}
	return slices.Contains(a.owners, owner{c.Position, claim})
}

// HasCapacity reports whether enough capacity of the device is left for the request.
func (a *Availability) HasCapacity(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if !a.features.ConsumableCapacity || len(c.Device.Capacity) == 0 && !r.WantsCapacity() {
		return true, nil
	}
	enough, err := capacity.CanServe(c.Device, r.Spec.Capacity, *celcompat.FractionalCapacityRange(&a.features), a.shares[c.Position], a.state.AggregatedCapacity[c.ID])
	if err != nil {
		return false, r.Errorf("checking capacity for device %s: %w", c.ID, err)
	}
	return enough, nil
}

// Reservation holds the data for giving back a device.
type Reservation struct {
	// counters is true if counters and compatibility groups were taken for the device.
	counters bool
	// Share identifies the allocation of a shared device, and is nil for others. Consumed holds the amounts that it consumes.
	Share    *types.UID
	Consumed capacity.Amounts
}

// Reserve takes the counters that the device consumes. It returns false if the counters don't suffice, or if the device is not
// compatible with other allocated devices.
//
// A further share of a shared device takes no counters, because the first share has taken them. If a device in use is no longer
// published, Reserve returns false for all devices of its pool, because the consumption of that device is unknown.
func (a *Availability) Reserve(c *inventory.Candidate) (reserved Reservation, ok bool) {
	if a.isCharged(c) {
		return Reservation{}, true
	}
	if a.hasUnpublished(c.Pool) {
		return Reservation{}, false
	}
	return a.reserve(c)
}

// isCharged reports whether the device takes no counters, because it consumes none or because the first share has taken them.
func (a *Availability) isCharged(c *inventory.Candidate) bool {
	return len(c.Device.ConsumesCounters) == 0 || c.Shared && (a.charged[c.Position] || a.state.IsShared(c.ID))
}

func (a *Availability) reserve(c *inventory.Candidate) (reserved Reservation, ok bool) {
	if a.isCharged(c) {
		return Reservation{}, true
	}
	if *celcompat.CompatibilityGroups(&a.features) && !a.GroupsOf(c.Pool).Take(c.Device) {
		return Reservation{}, false
	}
	if !a.CountersOf(c.Pool).Take(c.Device) {
		if *celcompat.CompatibilityGroups(&a.features) {
			a.GroupsOf(c.Pool).GiveBack()
		}
		return Reservation{}, false
	}
	if c.Shared {
		a.charged[c.Position] = true
	}
	return Reservation{counters: true}, true
}

// IsShared reports whether some claim has a share of the device.
func (a *Availability) IsShared(c *inventory.Candidate) bool {
	return len(a.shares[c.Position]) > 0 || a.state.IsShared(c.ID)
}

// Mark marks the device as taken by the claim.
func (a *Availability) Mark(claim int, r *requests.Request, c *inventory.Candidate, reserved *Reservation) error {
	if !c.Shared {
		a.taken.Add(c.Position)
		a.owners = append(a.owners, owner{c.Position, claim})
		return nil
	}
	consumed, _, err := capacity.Consumed(c.Device, r.Spec.Capacity, *celcompat.FractionalCapacityRange(&a.features))
	if err != nil {
		return r.Errorf("computing consumed capacity for device %s: %w", c.ID, err)
	}
	id := uuid.NewUUID()
	reserved.Share, reserved.Consumed = &id, consumed
	a.shares[c.Position] = append(a.shares[c.Position], consumed)
	return nil
}

// Unmark undoes the last Mark, which must have been for the same device.
func (a *Availability) Unmark(c *inventory.Candidate) {
	if c.Shared {
		a.shares[c.Position] = a.shares[c.Position][:len(a.shares[c.Position])-1]
		return
	}
	a.owners = a.owners[:len(a.owners)-1]
	if !slices.ContainsFunc(a.owners, func(o owner) bool { return o.position == c.Position }) {
		a.taken.Remove(c.Position)
	}
}

// Release undoes the last Reserve, which must have been for the same device.
func (a *Availability) Release(c *inventory.Candidate, reserved Reservation) {
	if !reserved.counters {
		return
	}
	delete(a.charged, c.Position)
	a.CountersOf(c.Pool).GiveBack(c.Device)
	if *celcompat.CompatibilityGroups(&a.features) {
		a.GroupsOf(c.Pool).GiveBack()
	}
}

// hasUnpublished reports whether a device in use of the pool is no longer published.
func (a *Availability) hasUnpublished(p *inventory.Pool) bool {
	left, known := a.unpublished[p]
	if !known {
		left = a.state.hasUnpublished(p)
		a.unpublished[p] = left
	}
	return left
}

// CountersOf returns the counters of a pool, including the consumption of allocated devices.
func (a *Availability) CountersOf(p *inventory.Pool) *counter.Counters {
	if a.counters[p] == nil {
		a.counters[p] = counter.New(p, a.isAllocated)
	}
	return a.counters[p]
}

// GroupsOf returns the compatibility groups of a pool, including the groups of allocated devices.
func (a *Availability) GroupsOf(p *inventory.Pool) *counter.Groups {
	if a.groups[p] == nil {
		a.groups[p] = counter.NewGroups(p, a.isAllocated)
	}
	return a.groups[p]
}

func (a *Availability) isAllocated(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return a.state.IsAllocated(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name))
}

// Allocated returns the positions of devices that earlier allocations use exclusively.
func (a *Availability) Allocated() bitset.Set { return a.allocated }

// Taken returns the positions of devices that the search uses exclusively.
func (a *Availability) Taken() bitset.Set { return a.taken }

// Expect allocates memory for a search that takes up to devices devices.
func (a *Availability) Expect(devices int) { a.owners = make([]owner, 0, devices) }

// Shares returns the amounts that each allocation of a shared device by the search consumes, in order.
func (a *Availability) Shares(c *inventory.Candidate) []capacity.Amounts { return a.shares[c.Position] }

// declaresOptionalNodeOperations is the feature that a node declares if it supports skipNodeOperations in a ResourceSlice.
const declaresOptionalNodeOperations = "DRAOptionalNodeOperations"

// IsUsable reports whether the request may get the device, by taints, conditions and node features. It ignores allocations.
func (a *Availability) IsUsable(r *requests.Request, c *inventory.Candidate) bool {
	if compat.SkipsNodeOperations(&c.Slice.Spec) &&
		(!*celcompat.OptionalNodeOperations(&a.features) || !slices.Contains(a.node.Status.DeclaredFeatures, declaresOptionalNodeOperations)) {
		return false
	}
	if len(c.Device.ConsumesCounters) > 0 && !a.features.PartitionableDevices {
		return false
	}
	return !a.features.DeviceTaints || tolerated(c.Device.Taints, r.Spec.Tolerations)
}

// tolerated reports whether the tolerations cover all taints that prevent an allocation. It ignores unknown effects.
func tolerated(taints []resourceapi.DeviceTaint, tolerations []resourceapi.DeviceToleration) bool {
	for _, taint := range taints {
		if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule && taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(t, taint)
		}) {
			return false
		}
	}
	return true
}

// Shortage is the reason why a device that another program has chosen is not available.
type Shortage int

const (
	// NoShortage means that the device is available.
	NoShortage Shortage = iota
	// InUse means that another claim uses the whole device.
	InUse
	// SharesInUse means that the whole device was chosen, but other claims have shares of it.
	SharesInUse
	// NoCapacity means that too little of a capacity is left for the share.
	NoCapacity
	// NoCounters means that counters of the pool don't suffice for the device, or that the device is incompatible with other
	// devices that consume the same counters.
	NoCounters
)

// Accept takes a device that another program has chosen. If the candidate is shared, it takes a share that consumes the given
// amounts. With NoCapacity it returns the name of the capacity.
//
// Accept checks only the available devices, capacities and counters. It checks neither the request nor whether the node can use
// the device. A candidate may have an ID without a Device. Consumption of devices that are no longer published is unknown and
// counts as zero.
func (a *Availability) Accept(c *inventory.Candidate, consumed capacity.Amounts) (Shortage, resourceapi.QualifiedName) {
	if a.allocated.Has(c.Position) || a.taken.Has(c.Position) {
		return InUse, ""
	}
	if !c.Shared && a.IsShared(c) {
		return SharesInUse, ""
	}
	if c.Device != nil {
		if c.Shared {
			if name, overdrawn := capacity.Exceeded(c.Device, consumed, a.shares[c.Position], a.state.AggregatedCapacity[c.ID]); overdrawn {
				return NoCapacity, name
			}
		}
		if _, ok := a.reserve(c); !ok {
			return NoCounters, ""
		}
	}
	if c.Shared {
		a.shares[c.Position] = append(a.shares[c.Position], consumed)
	} else {
		a.taken.Add(c.Position)
	}
	return NoShortage, ""
}

// MostByCounters returns an upper bound of the number of the given devices that the shared counters allow together.
//
// It assigns each device to the first counter set that the device consumes. If all devices of a set consume a counter, the
// counter limits their number: the remaining amount is divided by the smallest consumption.
func (a *Availability) MostByCounters(devices []*inventory.Candidate) int {
	most := 0
	limited := make(map[counterSet][]*inventory.Candidate)
	for _, c := range devices {
		if len(c.Device.ConsumesCounters) == 0 || c.Shared {
			most++
			continue
		}
		key := counterSet{c.Pool, c.Device.ConsumesCounters[0].CounterSet}
		limited[key] = append(limited[key], c)
	}
	for key, members := range limited {
		most += a.mostOfSet(key, members)
	}
	return most
}

// counterSet identifies a counter set of a pool.
type counterSet struct {
	pool *inventory.Pool
	name string
}

func (a *Availability) mostOfSet(key counterSet, members []*inventory.Candidate) int {
	most := len(members)
	left := a.CountersOf(key.pool).Left(key.name)
	for name, rest := range left {
		least, limiting := leastConsumed(members, name)
		if limiting {
			most = min(most, quotient(rest, least, most))
		}
	}
	return most
}

// leastConsumed returns the smallest amount of a counter in their first counter set that the members consume. limiting is false
// if a member does not consume the counter.
func leastConsumed(members []*inventory.Candidate, name string) (least resource.Quantity, limiting bool) {
	for i, c := range members {
		consumed, found := c.Device.ConsumesCounters[0].Counters[name]
		if !found || consumed.Value.Sign() <= 0 {
			return least, false
		}
		if i == 0 || consumed.Value.Cmp(least) < 0 {
			least = consumed.Value
		}
	}
	return least, true
}

// quotient returns how many times a fits into rest, but at most limit.
func quotient(rest, a resource.Quantity, limit int) int {
	count := 0
	for sum := a.DeepCopy(); count < limit && sum.Cmp(rest) <= 0; sum.Add(a) {
		count++
	}
	return count
}
