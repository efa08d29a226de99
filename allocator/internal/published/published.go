// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package published judges allocations that others have made against the pools that drivers have published: whether devices are
// in use, and whether enough capacity and counters are left.
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

// Features returns the features that change what allocated claims keep from others, all of them on. They are for a program that
// counts what an API server has stored, because it stores nothing of features that are off.
func Features() structured.Features {
	features := structured.Features{AdminAccess: true, ConsumableCapacity: true, PartitionableDevices: true}
	*celcompat.CompatibilityGroups(&features) = true
	return features
}

// Pool is a pool as all nodes together see it, for a program that judges allocations that others have made. It
// counts as a search does, with [Features]: devices are in use by their names, whatever was published;
// what shares consume and what partitions take from each other is known of the devices that there are in the
// latest generation of the pool. It is not modified, and safe for concurrent use.
type Pool struct {
	driver, name string
	// pool is nil if there are no slices.
	pool    *inventory.Pool
	devices map[string]*resourceapi.Device
	// partitioned: some devices consume counters.
	partitioned bool
}

// NewPool returns the pool of a driver that slices are of, which may be none.
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

// Partitioned reports whether devices of the pool take something from each other. Then what others have of all of
// its devices decides what is left of one, and else only what they have of that one.
func (p *Pool) Partitioned() bool { return p.partitioned }

// Overlap is why devices that somebody has chosen can't be had beside those that others have.
type Overlap struct {
	// Device is the first that can't be had. Reason says why; it is about the device.
	Device structured.DeviceID
	Reason string
	// Stale: it depends on what is published, and not only on what others have.
	Stale bool
	// InTheWay are the devices of which others have too much: the device itself, or those that take
	// something from it.
	InTheWay []structured.DeviceID
}

// Beside says why the results that are of this pool can't be had together, and beside what others have, nil if
// they can. Admin access takes nothing.
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

// takes reports whether a result is of this pool, and keeps something from others.
func (p *Pool) takes(result *resourceapi.DeviceRequestAllocationResult) bool {
	return result.Driver == p.driver && result.Pool == p.name && !ptr.Deref(result.AdminAccess, false)
}

// chosen are the devices that results take something of, each once, and their positions by name.
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
			// Whether a result is of a share is said by the result.
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
		overlap.Reason = "is a partition in an incomplete pool: the driver has not published all slices"
		if p.pool.Invalid != "" {
			overlap.Reason = "is a partition in an invalid pool: " + p.pool.Invalid
		}
	case availability.InUse:
		overlap.Reason = "is in use"
	case availability.SharesInUse:
		overlap.Reason = "is chosen as a whole, and shares of it are in use"
	case availability.NoCapacity:
		overlap.Stale = true
		overlap.Reason = fmt.Sprintf("has not enough left of its capacity %s", name)
	case availability.NoCounters:
		overlap.Stale = true
		overlap.Reason = "shares counters with devices in use, and too little of them is left"
		overlap.InTheWay = p.consuming(c.Device)
	}
	return overlap
}

// isUncounted reports whether the device consumes counters of which the pool does not tell how much there is.
func (p *Pool) isUncounted(c *inventory.Candidate) bool {
	return c.Device != nil && len(c.Device.ConsumesCounters) > 0 && (p.pool.Incomplete || p.pool.Invalid != "")
}

// consuming are the devices that take something from a device, itself among them.
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
