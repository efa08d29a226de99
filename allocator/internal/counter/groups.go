// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package counter

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/inventory"
)

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
		for _, consumption := range d.ConsumesCounters {
			c.current[consumption.CounterSet], _ = c.current[consumption.CounterSet].with(consumption.CompatibilityGroups)
		}
	})
	return c
}

// Take adds the device to its counter sets if it is compatible with all of them.
func (c *Groups) Take(d *resourceapi.Device) bool {
	before := make(map[string]compatibility, len(d.ConsumesCounters))
	for _, consumption := range d.ConsumesCounters {
		known := c.current[consumption.CounterSet]
		next, ok := known.with(consumption.CompatibilityGroups)
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
