// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counter counts what partitionable devices share: the counters of a pool, and the
// compatibility groups of those that consume the same ones (KEP-4815).
package counter

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/apis/compat"
)

// Partitionable devices (KEP-4815) overlap: they consume counters of a pool, and
// can be allocated together as long as no counter is exceeded.

// Counters is what there is of the counters of one pool, and what the search has
// taken of them.
type Counters struct {
	index     map[string]map[string]int // by counter set and counter
	available []resource.Quantity
	taken     []resource.Quantity
}

// New deducts what allocated devices of the pool consume, for whichever
// node they are. The rest may be negative. A device that is allocated but no
// longer published consumes nothing.
func New(p *inventory.Pool, isAllocated func(*resourceapi.ResourceSlice, *resourceapi.Device) bool) *Counters {
	c := &Counters{index: make(map[string]map[string]int)}
	for name, counterSet := range p.CounterSets {
		c.index[name] = make(map[string]int, len(counterSet))
		for counter, value := range counterSet {
			c.index[name][counter] = len(c.available)
			c.available = append(c.available, value.Value.DeepCopy())
		}
	}
	c.taken = make([]resource.Quantity, len(c.available))
	p.EachDevice(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) {
		if len(d.ConsumesCounters) > 0 && isAllocated(slice, d) {
			c.each(d, func(i int, amount resource.Quantity) { c.available[i].Sub(amount) })
		}
	})
	return c
}

// each calls f for each counter that the device consumes.
func (c *Counters) each(d *resourceapi.Device, f func(i int, amount resource.Quantity)) {
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			f(c.index[consumption.CounterSet][name], counter.Value)
		}
	}
}

// Take takes what the device consumes. If that leaves any counter of the pool
// exceeded, also one that the device does not consume, nothing is taken.
func (c *Counters) Take(d *resourceapi.Device) bool {
	c.each(d, func(i int, amount resource.Quantity) { c.taken[i].Add(amount) })
	for i := range c.available {
		if c.available[i].Cmp(c.taken[i]) < 0 {
			c.GiveBack(d)
			return false
		}
	}
	return true
}

// GiveBack undoes a take of the device.
func (c *Counters) GiveBack(d *resourceapi.Device) {
	c.each(d, func(i int, amount resource.Quantity) { c.taken[i].Sub(amount) })
}

// Left is what is left of the counters of a counter set.
func (c *Counters) Left(counterSet string) map[string]resource.Quantity {
	result := make(map[string]resource.Quantity, len(c.index[counterSet]))
	for name, i := range c.index[counterSet] {
		rest := c.available[i].DeepCopy()
		rest.Sub(c.taken[i])
		result[name] = rest
	}
	return result
}

// Devices that consume the same counter set may be allocated together only if
// they have a compatibility group in common, all of them. Devices without groups
// go together with devices without groups.

// compatibility is what the devices allocated from a counter set have in common.
// The zero value is that of no device. It is not modified, only replaced.
type compatibility struct {
	devices bool
	// ungrouped: the devices have no groups. Otherwise groups are those that all of
	// them have.
	ungrouped bool
	groups    sets.Set[string]
}

// with adds a device. ok is false if it is not compatible.
func (c compatibility) with(groups []string) (result compatibility, ok bool) {
	switch {
	case !c.devices:
		return compatibility{devices: true, ungrouped: len(groups) == 0, groups: sets.New(groups...)}, true
	case len(groups) == 0 || c.ungrouped:
		return c, len(groups) == 0 && c.ungrouped
	}
	common := c.groups.Intersection(sets.New(groups...))
	return compatibility{devices: true, groups: common}, common.Len() > 0
}

// Groups has the compatibility for each counter set of a pool, and what
// it was before each take: a stack.
type Groups struct {
	current map[string]compatibility
	before  []map[string]compatibility
}

// NewGroups starts with the allocated devices of the pool. If those are
// not compatible, nothing will be.
func NewGroups(p *inventory.Pool, isAllocated func(*resourceapi.ResourceSlice, *resourceapi.Device) bool) *Groups {
	c := &Groups{current: make(map[string]compatibility)}
	p.EachDevice(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) {
		if len(d.ConsumesCounters) == 0 || !isAllocated(slice, d) {
			return
		}
		for i := range d.ConsumesCounters {
			consumption := &d.ConsumesCounters[i]
			c.current[consumption.CounterSet], _ = c.current[consumption.CounterSet].with(compat.CompatibilityGroups(consumption))
		}
	})
	return c
}

// Take adds the device to its counter sets if it is compatible with all of them.
func (c *Groups) Take(d *resourceapi.Device) bool {
	before := make(map[string]compatibility, len(d.ConsumesCounters))
	for i := range d.ConsumesCounters {
		consumption := &d.ConsumesCounters[i]
		known := c.current[consumption.CounterSet]
		next, ok := known.with(compat.CompatibilityGroups(consumption))
		if !ok {
			c.restore(before)
			return false
		}
		if _, saved := before[consumption.CounterSet]; !saved {
			before[consumption.CounterSet] = known
		}
		c.current[consumption.CounterSet] = next
	}
	c.before = append(c.before, before)
	return true
}

// GiveBack undoes the last take.
func (c *Groups) GiveBack() {
	last := len(c.before) - 1
	c.restore(c.before[last])
	c.before = c.before[:last]
}

func (c *Groups) restore(before map[string]compatibility) {
	for counterSet, known := range before {
		c.current[counterSet] = known
	}
}
