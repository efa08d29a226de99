// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package published checks allocations that other programs have made against the published pools of drivers: whether the
// devices are in use, and whether enough capacity and counters are left.
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

// Features returns the features that change how allocated devices and capacity are counted, all turned on. It is for programs
// that read objects from the API server. The API server does not store fields of features that are off.
func Features() structured.Features {
	features := structured.Features{AdminAccess: true, ConsumableCapacity: true, PartitionableDevices: true}
	*celcompat.CompatibilityGroups(&features) = true
	return features
}

// Pool is a pool with the slices of all nodes. It checks allocations that other programs have made, and counts like a search
// with [Features]. A device can be in use even if it is not published. Capacity and counters are known only for devices in the
// latest generation of the pool. A Pool is never modified and is safe for concurrent use.
type Pool struct {
	driver, name string
	// pool is nil if the pool has no slices.
	pool    *inventory.Pool
	devices map[string]*resourceapi.Device
	// partitioned is true if some devices of the pool consume counters.
	partitioned bool
}

// NewPool returns a driver's pool with the given slices, which may be empty.
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

// Has reports whether the pool has a device with this name.
func (p *Pool) Has(device string) bool { return p.devices[device] != nil }

// Partitioned reports whether devices of the pool consume shared counters. If so, the allocation of a device may affect all
// other devices. Otherwise only allocations of the same device matter.
func (p *Pool) Partitioned() bool { return p.partitioned }

// Overlap describes why devices of one claim conflict with devices of other claims.
type Overlap struct {
	// Device is the first device that is not available. Reason is a predicate for the device, such as "is in use".
	Device structured.DeviceID
	Reason string
	// Stale is true if the reason depends on the published slices in addition to the allocations.
	Stale bool
	// InTheWay lists the devices whose other allocations conflict: Device itself, or devices that consume the same counters.
	InTheWay []structured.DeviceID
}

// Beside returns an Overlap if the results of this pool conflict with each other or with the allocations in others. Otherwise
// it returns nil. Results with admin access never conflict.
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

// takes reports whether a result is from this pool and has no admin access.
func (p *Pool) takes(result *resourceapi.DeviceRequestAllocationResult) bool {
	return result.Driver == p.driver && result.Pool == p.name && !ptr.Deref(result.AdminAccess, false)
}

// chosen returns each device of the results once. positions maps the name of a device to its position in devices.
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
			// Treat every candidate as shared here. Beside decides for each result whether the result is for a share.
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

// isUncounted reports whether the device consumes counters whose amounts are unknown, as the pool is incomplete or invalid.
func (p *Pool) isUncounted(c *inventory.Candidate) bool {
	return c.Device != nil && len(c.Device.ConsumesCounters) > 0 && (p.pool.Incomplete || p.pool.Invalid != "")
}

// consuming returns the devices that consume the same counter sets as the given device, including the device itself.
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
