// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counter tracks the resources that partitionable devices share: the counters of a pool, and the compatibility groups of
// devices with common counters (KEP-4815).
package counter

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/apis/compat"
)

// A partitionable device (KEP-4815) consumes counters of its pool. Devices can be allocated together if no counter is exceeded.

// Counters holds the counters of a pool: the amounts available before the search, and the amounts that the search has taken.
type Counters struct {
	index     map[string]map[string]int // by counter set and counter
	available []resource.Quantity
	taken     []resource.Quantity
}

// New returns the counters of a pool, reduced by the consumption of its allocated devices on all nodes. An amount may become
// negative. An allocated device that is no longer published counts as consuming nothing.
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

// each calls f for each counter that the device consumes, with the index of the counter.
func (c *Counters) each(d *resourceapi.Device, f func(i int, amount resource.Quantity)) {
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			f(c.index[consumption.CounterSet][name], counter.Value)
		}
	}
}

// Take takes the counters that the device consumes. If any counter of the pool would then be exceeded, even a counter that the
// device does not consume, Take takes nothing and returns false.
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

// GiveBack undoes a Take for the device.
func (c *Counters) GiveBack(d *resourceapi.Device) {
	c.each(d, func(i int, amount resource.Quantity) { c.taken[i].Sub(amount) })
}

// Left returns the remaining amounts of the counters in a counter set.
func (c *Counters) Left(counterSet string) map[string]resource.Quantity {
	result := make(map[string]resource.Quantity, len(c.index[counterSet]))
	for name, i := range c.index[counterSet] {
		rest := c.available[i].DeepCopy()
		rest.Sub(c.taken[i])
		result[name] = rest
	}
	return result
}

// Devices that consume the same counter set can be allocated together only if all of them have a common compatibility group. A
// device without groups can be combined only with devices without groups.

// compatibility holds the groups that all devices allocated from a counter set have in common. The zero value means that there
// are no such devices. A compatibility is replaced, never modified.
type compatibility struct {
	devices bool
	// ungrouped is true if the devices have no groups. Otherwise groups holds the groups that all devices have in common.
	ungrouped bool
	groups    sets.Set[string]
}

// with returns the compatibility after adding a device with the given groups. ok is false if the device is not compatible.
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

// Groups holds the compatibility for each counter set of a pool. before is a stack of former values, one for each Take.
type Groups struct {
	current map[string]compatibility
	before  []map[string]compatibility
}

// NewGroups returns the groups of a pool with its allocated devices. If these are incompatible, no further device is
// compatible.
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

// Take adds the device to the counter sets that it consumes and returns true, if it is compatible with all of them.
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

// GiveBack undoes the last Take.
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
