// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package published checks allocations made by other programs against the published pools of drivers: whether devices are in use,
// and whether enough capacity and counters are left.
package published

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/inventory"
	celcompat "github.com/celset/celset/cel/compat"
)

// Features returns the features that affect the devices and capacity of allocated claims, all turned on. They are for a program
// that counts objects in the API server, which does not store fields of features that are off.
func Features() structured.Features {
	features := structured.Features{AdminAccess: true, ConsumableCapacity: true, PartitionableDevices: true}
	*celcompat.CompatibilityGroups(&features) = true
	return features
}

// Pool is a pool with the slices of all nodes, for a program that checks allocations made by others. It counts like a search with
// [Features]. Devices are in use by name, even if they are not published. Capacity and counters are only known for devices in the
// latest generation of the pool. A Pool is not modified, and safe for concurrent use.
type Pool struct {
	driver, name string
	// pool is nil if no slices exist.
	pool    *inventory.Pool
	devices map[string]*resourceapi.Device
	// partitioned is true if some devices consume counters.
	partitioned bool
}

// NewPool returns the pool of a driver, made from its slices. There may be no slices.
func NewPool(driver, name string, slices []*resourceapi.ResourceSlice) *Pool {
	p := &Pool{driver: driver, name: name, devices: map[string]*resourceapi.Device{}}
	p.pool = inventory.Whole(Features(), inventory.ID{Driver: driver, Name: name}, slices)
	if p.pool == nil {
		return p
	}
	p.pool.EachDevice(func(_ *resourceapi.ResourceSlice, device *resourceapi.Device) {
		p.devices[device.Name] = device
		p.partitioned = p.partitioned || len(device.ConsumesCounters) > 0
	})
	return p
}

// Has reports whether the pool has a device of that name.
func (p *Pool) Has(device string) bool { return p.devices[device] != nil }

// Partitioned reports whether devices of the pool share counters. Then allocations of all its devices affect each of them.
// Otherwise a device depends only on its own allocations.
func (p *Pool) Partitioned() bool { return p.partitioned }

// Overlap is the reason why chosen devices conflict with devices of other claims.
type Overlap struct {
	// Device is the first unavailable device. Reason is a predicate of the device, such as "is in use".
	Device structured.DeviceID
	Reason string
	// Stale is true if the reason depends on published slices, not only on other allocations.
	Stale bool
	// InTheWay holds the devices whose other allocations conflict: the device itself, or devices that consume the same counters.
	InTheWay []structured.DeviceID
}

// Beside returns the reason why results of this pool conflict with each other or with other allocations, or nil. Results with
// admin access never conflict.
func (p *Pool) Beside(others structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult) *Overlap {
	devices, positions := p.chosen(results)
	state := availability.NewState(others)
	available := availability.New(Features(), nil, state, state.Of(devices), len(devices))
	for i := range results {
		if !p.takes(&results[i]) {
			continue
		}
		c := *devices[positions[results[i].Device]]
		c.Shared = results[i].ShareID != nil
		if overlap := p.judge(available, &c, results[i].ConsumedCapacity); overlap != nil {
			return overlap
		}
	}
	return nil
}

// takes reports whether a result is from this pool and without admin access.
func (p *Pool) takes(result *resourceapi.DeviceRequestAllocationResult) bool {
	return result.Driver == p.driver && result.Pool == p.name && !ptr.Deref(result.AdminAccess, false)
}

// chosen returns each device of the results once, and the positions by name.
func (p *Pool) chosen(results []resourceapi.DeviceRequestAllocationResult) (devices []*inventory.Candidate, positions map[string]int) {
	positions = make(map[string]int, len(results))
	for i := range results {
		result := &results[i]
		if _, known := positions[result.Device]; known || !p.takes(result) {
			continue
		}
		positions[result.Device] = len(devices)
		devices = append(devices, &inventory.Candidate{
			ID:     structured.MakeDeviceID(result.Driver, result.Pool, result.Device),
			Device: p.devices[result.Device], Pool: p.pool, Position: len(devices),
			// Every candidate counts as shareable here. Whether the result is for a share follows from the result, not from the
			// device.
			Shared: true,
		})
	}
	return devices, positions
}

func (p *Pool) judge(available *availability.Availability, c *inventory.Candidate, consumed map[resourceapi.QualifiedName]resource.Quantity) *Overlap {
	overlap := &Overlap{Device: c.ID, InTheWay: []structured.DeviceID{c.ID}}
	uncounted := p.isUncounted(c) && !available.IsShared(c)
	if uncounted {
		c.Device = nil
	}
	switch shortage, name := available.Accept(c, consumed); shortage {
	case availability.NoShortage:
		if !uncounted {
			return nil
		}
		overlap.Stale = true
		overlap.Reason = "is a partition in an incomplete pool: wait until the driver has published all ResourceSlices"
		if p.pool.Invalid != "" {
			overlap.Reason = "is a partition in an invalid pool: " + p.pool.Invalid
		}
	case availability.InUse:
		overlap.Reason = "is in use"
	case availability.SharesInUse:
		overlap.Reason = "can't be allocated as a whole, because other claims use shares of it"
	case availability.NoCapacity:
		overlap.Stale = true
		overlap.Reason = fmt.Sprintf("has too little free capacity %s", name)
	case availability.NoCounters:
		overlap.Stale = true
		overlap.Reason = "shares counters with devices in use, and these counters have too little left"
		overlap.InTheWay = p.consuming(c.Device)
	}
	return overlap
}

// isUncounted reports whether the device consumes counters, and the pool is too incomplete to define their amounts.
func (p *Pool) isUncounted(c *inventory.Candidate) bool {
	return c.Device != nil && len(c.Device.ConsumesCounters) > 0 && (p.pool.Incomplete || p.pool.Invalid != "")
}

// consuming returns the devices that consume the same counter sets as a device, including itself.
func (p *Pool) consuming(device *resourceapi.Device) []structured.DeviceID {
	sets := map[string]bool{}
	for _, consumption := range device.ConsumesCounters {
		sets[consumption.CounterSet] = true
	}
	var consuming []structured.DeviceID
	p.pool.EachDevice(func(_ *resourceapi.ResourceSlice, other *resourceapi.Device) {
		for _, consumption := range other.ConsumesCounters {
			if sets[consumption.CounterSet] {
				consuming = append(consuming, structured.MakeDeviceID(p.driver, p.name, other.Name))
				return
			}
		}
	})
	return consuming
}
