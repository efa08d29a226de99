// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Partitionable devices (KEP-4815) overlap: they consume counters of a pool, and
// can be allocated together as long as no counter is exceeded.

// counters is what there is of the counters of one pool, and what the search has
// taken of them.
type counters struct {
	index     map[string]map[string]int // by counter set and counter
	available []resource.Quantity
	taken     []resource.Quantity
}

// newCounters deducts what allocated devices of the pool consume, for whichever
// node they are. The rest may be negative. A device that is allocated but no
// longer published consumes nothing.
func newCounters(p *pool, isAllocated func(*resourceapi.ResourceSlice, *resourceapi.Device) bool) *counters {
	c := &counters{index: make(map[string]map[string]int)}
	for name, counterSet := range p.counterSets {
		c.index[name] = make(map[string]int, len(counterSet))
		for counter, value := range counterSet {
			c.index[name][counter] = len(c.available)
			c.available = append(c.available, value.Value.DeepCopy())
		}
	}
	c.taken = make([]resource.Quantity, len(c.available))
	p.eachDevice(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) {
		if len(d.ConsumesCounters) > 0 && isAllocated(slice, d) {
			c.each(d, func(i int, amount resource.Quantity) { c.available[i].Sub(amount) })
		}
	})
	return c
}

// each calls f for each counter that the device consumes.
func (c *counters) each(d *resourceapi.Device, f func(i int, amount resource.Quantity)) {
	for _, consumption := range d.ConsumesCounters {
		for name, counter := range consumption.Counters {
			f(c.index[consumption.CounterSet][name], counter.Value)
		}
	}
}

// take takes what the device consumes. If that leaves any counter of the pool
// exceeded, also one that the device does not consume, nothing is taken.
func (c *counters) take(d *resourceapi.Device) bool {
	c.each(d, func(i int, amount resource.Quantity) { c.taken[i].Add(amount) })
	for i := range c.available {
		if c.available[i].Cmp(c.taken[i]) < 0 {
			c.giveBack(d)
			return false
		}
	}
	return true
}

func (c *counters) giveBack(d *resourceapi.Device) {
	c.each(d, func(i int, amount resource.Quantity) { c.taken[i].Sub(amount) })
}

// left is what is left of the counters of a counter set.
func (c *counters) left(counterSet string) map[string]resource.Quantity {
	result := make(map[string]resource.Quantity, len(c.index[counterSet]))
	for name, i := range c.index[counterSet] {
		rest := c.available[i].DeepCopy()
		rest.Sub(c.taken[i])
		result[name] = rest
	}
	return result
}
