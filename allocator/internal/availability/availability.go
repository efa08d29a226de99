// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package availability knows what is left of the devices of a node. A device can be in use, share
// counters with others that are, or have shares of its capacity given away, by allocations from
// before ([State]) and by what the search took so far ([Availability]).
//
// What the search takes is a stack: what was taken last is given back first, and then all is
// as it was before.
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

// Availability is what is left of the devices: what was allocated before is
// known from the state, what the search takes is added and taken back again.
type Availability struct {
	features structured.Features
	node     *v1.Node
	state    *State
	// allocated has the positions of the devices that were allocated before, exclusively,
	// taken those of the devices that the search took, exclusively.
	allocated, taken bitset.Set
	// owners are those for whom the search took devices exclusively: more than one has a
	// device only with admin access. It is a stack.
	owners []owner
	// shares has by position what the search's allocations of a shared device consume,
	// each a stack.
	shares map[int][]capacity.Amounts
	// charged has the positions of the shared devices for which the search took counters.
	// Shares with admin access take none.
	charged map[int]bool
	// counters and groups are those of the pools that were needed so far.
	counters map[*inventory.Pool]*counter.Counters
	groups   map[*inventory.Pool]*counter.Groups
	// left has whether a device of the pool is in use that is not published any more.
	left map[*inventory.Pool]bool
}

// owner is a claim for which a device was taken.
type owner struct{ position, claim int }

// New is what is left on a node of which the devices in the given positions are allocated.
func New(features structured.Features, node *v1.Node, state *State, allocated bitset.Set, devices int) *Availability {
	return &Availability{
		features:  features,
		node:      node,
		state:     state,
		allocated: allocated,
		taken:     bitset.New(devices),
		shares:    make(map[int][]capacity.Amounts),
		charged:   make(map[int]bool),
		counters:  make(map[*inventory.Pool]*counter.Counters),
		groups:    make(map[*inventory.Pool]*counter.Groups),
		left:      make(map[*inventory.Pool]bool),
	}
}

// InUse reports whether the device is not to be had for the request. Admin access
// shares devices with everybody, but a claim gets a device only once.
func (a *Availability) InUse(claim int, r *requests.Request, c *inventory.Candidate) bool {
	if !r.AdminAccess() {
		return a.allocated.Has(c.Position) || a.taken.Has(c.Position)
	}
	return slices.Contains(a.owners, owner{c.Position, claim})
}

// HasCapacity reports whether enough of the device's capacities is left for the
// request.
func (a *Availability) HasCapacity(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if !a.features.ConsumableCapacity || len(c.Device.Capacity) == 0 && !r.WantsCapacity() {
		return true, nil
	}
	enough, err := capacity.HasRoom(c.Device, r.Spec.Capacity, *celcompat.FractionalCapacityRange(&a.features), a.shares[c.Position], a.state.AggregatedCapacity[c.ID])
	if err != nil {
		return false, r.Errorf("checking capacity for device %s: %w", c.ID, err)
	}
	return enough, nil
}

// Reservation is what took a device, to give it back.
type Reservation struct {
	// counters: counters and compatibility groups were taken.
	counters bool
	// Share identifies an allocation of a shared device, nil for others. Consumed is
	// what it consumes.
	Share    *types.UID
	Consumed capacity.Amounts
}

// Reserve takes what the device consumes of its pool's counters if it is
// available and compatible with what else is allocated.
//
// A further share of a shared device consumes none: the device has them already. While a
// device of the pool is in use that is not published any more, none are available: what it
// consumes is not known.
func (a *Availability) Reserve(c *inventory.Candidate) (reserved Reservation, ok bool) {
	if a.isCharged(c) {
		return Reservation{}, true
	}
	if a.hasLeft(c.Pool) {
		return Reservation{}, false
	}
	return a.reserve(c)
}

// isCharged reports whether the device consumes no counters beyond those that it has.
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

// IsShared reports whether somebody has a share of a shared device.
func (a *Availability) IsShared(c *inventory.Candidate) bool {
	return len(a.shares[c.Position]) > 0 || a.state.IsShared(c.ID)
}

// Mark records the device as taken, for good unless it is released.
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

// Unmark undoes the last Mark, which was that of the device.
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

// Release undoes the last Reserve.
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

// hasLeft reports whether a device of the pool is in use that is not published any more.
func (a *Availability) hasLeft(p *inventory.Pool) bool {
	left, known := a.left[p]
	if !known {
		left = a.state.hasLeft(p)
		a.left[p] = left
	}
	return left
}

// CountersOf are the counters of a pool.
func (a *Availability) CountersOf(p *inventory.Pool) *counter.Counters {
	if a.counters[p] == nil {
		a.counters[p] = counter.New(p, a.isAllocated)
	}
	return a.counters[p]
}

// GroupsOf are the compatibility groups of a pool.
func (a *Availability) GroupsOf(p *inventory.Pool) *counter.Groups {
	if a.groups[p] == nil {
		a.groups[p] = counter.NewGroups(p, a.isAllocated)
	}
	return a.groups[p]
}

func (a *Availability) isAllocated(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return a.state.IsAllocated(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name))
}

// Allocated has the positions of the devices that were allocated before, exclusively.
func (a *Availability) Allocated() bitset.Set { return a.allocated }

// Taken has those of the devices that the search took, exclusively.
func (a *Availability) Taken() bitset.Set { return a.taken }

// Expect makes room for so many devices.
func (a *Availability) Expect(devices int) { a.owners = make([]owner, 0, devices) }

// Shares are what the search's allocations of a shared device consume, the last one last.
func (a *Availability) Shares(c *inventory.Candidate) []capacity.Amounts { return a.shares[c.Position] }

// declaresOptionalNodeOperations is what a node declares that can leave out node
// operations (the field skipNodeOperations of a ResourceSlice).
const declaresOptionalNodeOperations = "DRAOptionalNodeOperations"

// IsUsable decides what depends on the device, the node and the request, but not
// on what else is allocated.
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

// tolerated reports whether no taint keeps the device from being allocated.
// Unknown effects don't.
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

// Shortage is what is missing of a device that somebody else has chosen.
type Shortage int

const (
	// NoShortage means that the device was to be had.
	NoShortage Shortage = iota
	// InUse means that somebody has the device as a whole.
	InUse
	// SharesInUse means that the device was chosen as a whole, and somebody has shares of it.
	SharesInUse
	// NoCapacity means that what the share consumes is not left of one of the device's capacities.
	NoCapacity
	// NoCounters means that what the device consumes is not left of the pool's counters, or the device is
	// not compatible with others that consume them.
	NoCounters
)

// Accept takes a device that somebody else has chosen, a share of it if the candidate is shared, of
// which it is said what it consumes. The name is that of the capacity of which there is not enough.
//
// It asks for no more than what is left: whether the device is what was asked for, and whether its
// node can use it, is not looked at. A candidate without a Device is known by its ID only. What
// devices consume that are not published any more is not known, and counts as nothing here.
func (a *Availability) Accept(c *inventory.Candidate, consumed capacity.Amounts) (Shortage, resourceapi.QualifiedName) {
	if a.allocated.Has(c.Position) || a.taken.Has(c.Position) {
		return InUse, ""
	}
	if !c.Shared && a.IsShared(c) {
		return SharesInUse, ""
	}
	if c.Device != nil {
		if c.Shared {
			if name, overdrawn := capacity.Overdrawn(c.Device, consumed, a.shares[c.Position], a.state.AggregatedCapacity[c.ID]); overdrawn {
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

// MostByCounters returns how many of the devices the shared counters permit at
// most.
//
// Each device that consumes counters is assigned to the first counter set that it
// consumes, and for each counter set a counter that all assigned devices consume
// limits their number: what is left of it, divided by the least that one of them
// takes.
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

// counterSet identifies a counter set.
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

// leastConsumed is the least that one of the devices consumes of a counter of
// their first counter set. limiting is false if one of them consumes nothing.
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

// quotient is how many times a goes into rest, limit if that is less.
func quotient(rest, a resource.Quantity, limit int) int {
	count := 0
	for sum := a.DeepCopy(); count < limit && sum.Cmp(rest) <= 0; sum.Add(a) {
		count++
	}
	return count
}
