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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/counter"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
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

// InUse tells whether the device is not to be had for the request. Admin access
// shares devices with everybody, but a claim gets a device only once.
func (a *Availability) InUse(claim int, r *requests.Request, c *inventory.Candidate) bool {
	if !r.AdminAccess() {
		return a.allocated.Has(c.Position) || a.taken.Has(c.Position)
	}
	return slices.Contains(a.owners, owner{c.Position, claim})
}

// HasCapacity tells whether enough of the device's capacities is left for the
// request.
func (a *Availability) HasCapacity(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if !a.features.ConsumableCapacity || len(c.Device.Capacity) == 0 && !r.WantsCapacity() {
		return true, nil
	}
	enough, err := capacity.HasRoom(c.Device, r.Spec.Capacity, a.features.FractionalCapacityRange, a.shares[c.Position], a.state.AggregatedCapacity[c.ID])
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

// isCharged tells whether the device consumes no counters beyond those that it has.
func (a *Availability) isCharged(c *inventory.Candidate) bool {
	return len(c.Device.ConsumesCounters) == 0 || c.Shared && (a.charged[c.Position] || a.state.IsShared(c.ID))
}

func (a *Availability) reserve(c *inventory.Candidate) (reserved Reservation, ok bool) {
	if a.isCharged(c) {
		return Reservation{}, true
	}
	if a.features.CompatibilityGroups && !a.GroupsOf(c.Pool).Take(c.Device) {
		return Reservation{}, false
	}
	if !a.CountersOf(c.Pool).Take(c.Device) {
		if a.features.CompatibilityGroups {
			a.GroupsOf(c.Pool).GiveBack()
		}
		return Reservation{}, false
	}
	if c.Shared {
		a.charged[c.Position] = true
	}
	return Reservation{counters: true}, true
}

// IsShared tells whether somebody has a share of a shared device.
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
	consumed, _, err := capacity.Consumed(c.Device, r.Spec.Capacity, a.features.FractionalCapacityRange)
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
	if a.features.CompatibilityGroups {
		a.GroupsOf(c.Pool).GiveBack()
	}
}

// hasLeft tells whether a device of the pool is in use that is not published any more.
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
