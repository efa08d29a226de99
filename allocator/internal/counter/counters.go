// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counter counts what partitionable devices share: the counters of a pool, and the
// compatibility groups of those that consume the same ones (KEP-4815).
package counter

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/celset/celset/allocator/internal/inventory"
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
