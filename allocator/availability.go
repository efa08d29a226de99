// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/dynamic-resource-allocation/structured"

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
	counters        map[*pool]*counters
	compatibilities map[*pool]*compatibilities
}

// owner is a claim for which a device was taken.
type owner struct{ position, claim int }

func newAvailability(features structured.Features, state *allocatedState, candidates []*candidate, allocated bitset.Set) *availability {
	a := &availability{
		features:        features,
		state:           state,
		shares:          make(map[int][]capacity.Amounts),
		counters:        make(map[*pool]*counters),
		compatibilities: make(map[*pool]*compatibilities),
	}
	a.allocated, a.taken = allocated, bitset.New(len(candidates))
	return a
}

// allocatedOf has the positions of the candidates that are allocated, exclusively.
func allocatedOf(state *allocatedState, candidates []*candidate) bitset.Set {
	allocated := bitset.New(len(candidates))
	if len(state.AllocatedDevices) == 0 {
		return allocated
	}
	for i, c := range candidates {
		if state.AllocatedDevices.Has(c.id) {
			allocated.Add(i)
		}
	}
	return allocated
}

// inUse tells whether the device is not to be had for the request. Admin access
// shares devices with everybody, but a claim gets a device only once.
func (a *availability) inUse(claim int, r *request, c *candidate) bool {
	if !r.adminAccess() {
		return a.allocated.Has(c.position) || a.taken.Has(c.position)
	}
	return slices.Contains(a.owners, owner{c.position, claim})
}

// hasCapacity tells whether enough of the device's capacities is left for the
// request.
func (a *availability) hasCapacity(r *request, c *candidate) (bool, error) {
	if !a.features.ConsumableCapacity || len(c.device.Capacity) == 0 && !r.wantsCapacity() {
		return true, nil
	}
	enough, err := capacity.HasRoom(c.device, r.spec.Capacity, a.features.FractionalCapacityRange, a.shares[c.position], a.state.AggregatedCapacity[c.id])
	if err != nil {
		return false, r.errorf("checking capacity for device %s: %w", c.id, err)
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
func (a *availability) reserveCounters(c *candidate) (reserved reservation, ok bool) {
	if len(c.device.ConsumesCounters) == 0 || c.shared && a.isShared(c) {
		return reservation{}, true
	}
	if a.features.CompatibilityGroups && !a.compatibilitiesOf(c.pool).take(c.device) {
		return reservation{}, false
	}
	if !a.countersOf(c.pool).take(c.device) {
		if a.features.CompatibilityGroups {
			a.compatibilitiesOf(c.pool).giveBack()
		}
		return reservation{}, false
	}
	return reservation{counters: true}, true
}

// isShared tells whether somebody has a share of a shared device.
func (a *availability) isShared(c *candidate) bool {
	return len(a.shares[c.position]) > 0 || a.state.isShared(c.id)
}

// mark records the device as taken, for good unless it is released.
func (a *availability) mark(claim int, r *request, c *candidate, reserved *reservation) error {
	if !c.shared {
		a.taken.Add(c.position)
		a.owners = append(a.owners, owner{c.position, claim})
		return nil
	}
	consumed, _, err := capacity.Consumed(c.device, r.spec.Capacity, a.features.FractionalCapacityRange)
	if err != nil {
		return r.errorf("computing consumed capacity for device %s: %w", c.id, err)
	}
	id := uuid.NewUUID()
	reserved.share, reserved.consumed = &id, consumed
	a.shares[c.position] = append(a.shares[c.position], consumed)
	return nil
}

// unmark undoes the last mark, which was that of the device.
func (a *availability) unmark(c *candidate) {
	if c.shared {
		a.shares[c.position] = a.shares[c.position][:len(a.shares[c.position])-1]
		return
	}
	a.owners = a.owners[:len(a.owners)-1]
	if !slices.ContainsFunc(a.owners, func(o owner) bool { return o.position == c.position }) {
		a.taken.Remove(c.position)
	}
}

// releaseCounters undoes the last reserveCounters.
func (a *availability) releaseCounters(c *candidate, reserved reservation) {
	if !reserved.counters {
		return
	}
	a.countersOf(c.pool).giveBack(c.device)
	if a.features.CompatibilityGroups {
		a.compatibilitiesOf(c.pool).giveBack()
	}
}

func (a *availability) countersOf(p *pool) *counters {
	if a.counters[p] == nil {
		a.counters[p] = newCounters(p, a.isAllocated)
	}
	return a.counters[p]
}

func (a *availability) compatibilitiesOf(p *pool) *compatibilities {
	if a.compatibilities[p] == nil {
		a.compatibilities[p] = newCompatibilities(p, a.isAllocated)
	}
	return a.compatibilities[p]
}

func (a *availability) isAllocated(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	return a.state.isAllocated(structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name))
}
