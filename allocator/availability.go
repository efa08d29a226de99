// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/counter"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"

	"github.com/celset/celset/allocator/internal/capacity"
)

// availability is what is left of the devices: what was allocated before is
// known from the state, what the search takes is added and taken back again.
type availability struct {
	features structured.Features
	state    *allocatedState
	// allocated has the positions of the devices that were allocated before, exclusively,
	// taken those of the devices that the search took, exclusively.
	allocated, taken bitset.Set
	// owners are those for whom the search took devices exclusively: more than one has a
	// device only with admin access. It is a stack.
	owners []owner
	// shares has by position what the search's allocations of a shared device consume,
	// each a stack.
	shares map[int][]capacity.Amounts
	// counters and compatibilities are those of the pools that were needed so far.
	counters        map[*inventory.Pool]*counter.Counters
	compatibilities map[*inventory.Pool]*counter.Groups
}

// owner is a claim for which a device was taken.
type owner struct{ position, claim int }

func newAvailability(features structured.Features, state *allocatedState, candidates []*inventory.Candidate, allocated bitset.Set) *availability {
	a := &availability{
		features:        features,
		state:           state,
		shares:          make(map[int][]capacity.Amounts),
		counters:        make(map[*inventory.Pool]*counter.Counters),
		compatibilities: make(map[*inventory.Pool]*counter.Groups),
	}
	a.allocated, a.taken = allocated, bitset.New(len(candidates))
	return a
}

// allocatedOf has the positions of the candidates that are allocated, exclusively.
func allocatedOf(state *allocatedState, candidates []*inventory.Candidate) bitset.Set {
	allocated := bitset.New(len(candidates))
	if len(state.AllocatedDevices) == 0 {
		return allocated
	}
	for i, c := range candidates {
		if state.AllocatedDevices.Has(c.ID) {
			allocated.Add(i)
		}
	}
	return allocated
}

// inUse tells whether the device is not to be had for the request. Admin access
// shares devices with everybody, but a claim gets a device only once.
func (a *availability) inUse(claim int, r *request, c *inventory.Candidate) bool {
	if !r.adminAccess() {
		return a.allocated.Has(c.Position) || a.taken.Has(c.Position)
	}
	return slices.Contains(a.owners, owner{c.Position, claim})
}

// hasCapacity tells whether enough of the device's capacities is left for the
// request.
func (a *availability) hasCapacity(r *request, c *inventory.Candidate) (bool, error) {
	if !a.features.ConsumableCapacity || len(c.Device.Capacity) == 0 && !r.wantsCapacity() {
		return true, nil
	}
	enough, err := capacity.HasRoom(c.Device, r.spec.Capacity, a.features.FractionalCapacityRange, a.shares[c.Position], a.state.AggregatedCapacity[c.ID])
	if err != nil {
		return false, r.errorf("checking capacity for device %s: %w", c.ID, err)
	}
	return enough, nil
}

// reservation is what took a device, to give it back.
type reservation struct {
	// counters: counters and compatibility groups were taken.
	counters bool
	// share identifies an allocation of a shared device, nil for others. consumed is
	// what it consumes.
	share    *types.UID
	consumed capacity.Amounts
}

// reserveCounters takes what the device consumes of its pool's counters if it is
// available and compatible with what else is allocated.
//
// A further share of a shared device consumes none: the device has them already.
func (a *availability) reserveCounters(c *inventory.Candidate) (reserved reservation, ok bool) {
	if len(c.Device.ConsumesCounters) == 0 || c.Shared && a.isShared(c) {
		return reservation{}, true
	}
	if a.features.CompatibilityGroups && !a.compatibilitiesOf(c.Pool).Take(c.Device) {
		return reservation{}, false
	}
	if !a.countersOf(c.Pool).Take(c.Device) {
		if a.features.CompatibilityGroups {
			a.compatibilitiesOf(c.Pool).GiveBack()
		}
		return reservation{}, false
	}
	return reservation{counters: true}, true
}

// isShared tells whether somebody has a share of a shared device.
func (a *availability) isShared(c *inventory.Candidate) bool {
	return len(a.shares[c.Position]) > 0 || a.state.isShared(c.ID)
}

// mark records the device as taken, for good unless it is released.
func (a *availability) mark(claim int, r *request, c *inventory.Candidate, reserved *reservation) error {
	if !c.Shared {
		a.taken.Add(c.Position)
		a.owners = append(a.owners, owner{c.Position, claim})
		return nil
	}
	consumed, _, err := capacity.Consumed(c.Device, r.spec.Capacity, a.features.FractionalCapacityRange)
	if err != nil {
		return r.errorf("computing consumed capacity for device %s: %w", c.ID, err)
	}
	id := uuid.NewUUID()
	reserved.share, reserved.consumed = &id, consumed
	a.shares[c.Position] = append(a.shares[c.Position], consumed)
	return nil
}

// unmark undoes the last mark, which was that of the device.
func (a *availability) unmark(c *inventory.Candidate) {
	if c.Shared {
		a.shares[c.Position] = a.shares[c.Position][:len(a.shares[c.Position])-1]
		return
	}
	a.owners = a.owners[:len(a.owners)-1]
	if !slices.ContainsFunc(a.owners, func(o owner) bool { return o.position == c.Position }) {
		a.taken.Remove(c.Position)
	}
}

// releaseCounters undoes the last reserveCounters.
func (a *availability) releaseCounters(c *inventory.Candidate, reserved reservation) {
	if !reserved.counters {
		return
	}
	a.countersOf(c.Pool).GiveBack(c.Device)
	if a.features.CompatibilityGroups {
		a.compatibilitiesOf(c.Pool).GiveBack()
	}
}

func (a *availability) countersOf(p *inventory.Pool) *counter.Counters {
	if a.counters[p] == nil {
		a.counters[p] = counter.New(p, a.isAllocated)
	}
	return a.counters[p]
}

func (a *availability) compatibilitiesOf(p *inventory.Pool) *counter.Groups {
	if a.compatibilities[p] == nil {
		a.compatibilities[p] = counter.NewGroups(p, a.isAllocated)
	}
	return a.compatibilities[p]
}

func (a *availability) isAllocated(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return a.state.isAllocated(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name))
}
