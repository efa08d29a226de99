// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// Trait is something that may make a case interesting.
type Trait struct {
	Name string
	// Strip removes the trait from a case, which is modified, and says whether there
	// was anything to remove. Comparing the outcomes with and without it shows
	// whether the trait mattered.
	Strip func(*Case) bool
}

// IsRare tells whether the trait seldom matters, so that it is worth a look
// whenever it occurs.
func (t Trait) IsRare() bool { return slices.Contains(rareTraits, t.Name) }

var rareTraits = []string{
	"alternative over the limit", "second counter set", "counters of devices for other nodes", "shares without capacity",
}

// Traits are all traits that are known.
var Traits = []Trait{
	{"several claims", stripClaims},
	{"several requests", eachClaim(stripRequests)},
	{"count above one", eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return replace(&r.Count, min(r.Count, 1)) })},
	{"count zero", eachRequest(stripZero)},
	{"all devices", eachRequest(stripAll)},
	{"alternatives", eachClaim(stripAlternatives)},
	{"second alternatives", eachClaim(stripSecondAlternatives)},
	{"alternative over the limit", eachClaim(stripLargeAlternatives)},
	{"reference to an alternative", eachClaim(stripAlternativeNames)},
	{"admin access", stripAdminAccess},
	{"request selectors", eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return empty(&r.Selectors) })},
	{"class selectors", stripClassSelectors},
	{"class configuration", stripClassConfiguration},
	{"claim configuration", eachClaim(func(d *resourceapi.DeviceClaim) bool { return empty(&d.Config) })},
	{"match attribute", eachClaim(stripConstraints(func(c resourceapi.DeviceConstraint) bool { return c.MatchAttribute != nil && !isReference(c) }))},
	{"distinct attribute", eachClaim(stripConstraints(func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil }))},
	{"CEL constraint", eachClaim(stripConstraints(isReference))},
	{"default constraint", stripDefaults},
	{"constraint over some requests", eachClaim(stripConstraints(func(c resourceapi.DeviceConstraint) bool { return len(c.Requests) > 0 }))},
	{"derived attributes", eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return empty(&r.DerivedAttributes) })},
	{"list attributes", eachDevice(stripLists)},
	{"allocated devices", func(c *Case) bool { return empty(&c.Allocated) }},
	{"taints", eachDevice(func(d *resourceapi.Device) bool { return empty(&d.Taints) })},
	{"tolerations", stripTolerations},
	{"binding conditions", eachDevice(stripBindingConditions)},
	{"binds to node", eachDevice(func(d *resourceapi.Device) bool { return replace(&d.BindsToNode, nil) })},
	{"skip node operations", eachSlice(func(s *resourceapi.ResourceSliceSpec) bool { return empty(&s.SkipNodeOperations) })},
	{"per-device node selection", eachSlice(stripPerDevice)},
	{"node selector", eachSlice(stripNodeSelector)},
	{"slices for other nodes", eachSlice(stripElsewhere)},
	{"several pools", stripPools},
	{"order of slice names", stripSliceNames},
	{"older generation", eachSlice(stripOlder)},
	{"newer generation", stripNewer},
	{"shared counters", stripCounters},
	{"second counter set", eachDevice(stripSecondCounterSet)},
	{"counters of allocated devices", stripAllocatedConsumers},
	{"counters of devices for other nodes", stripConsumersElsewhere},
	{"compatibility groups", eachDevice(stripGroups)},
	{"multiple allocations", eachDevice(func(d *resourceapi.Device) bool {
		return isTrue(d.AllowMultipleAllocations) && replace(&d.AllowMultipleAllocations, nil)
	})},
	{"capacity requests", eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return replace(&r.Capacity, nil) })},
	{"request policies", eachCapacity(func(c *resourceapi.DeviceCapacity) bool { return replace(&c.RequestPolicy, nil) })},
	{"valid values", eachPolicy(func(p *resourceapi.CapacityRequestPolicy) bool { return empty(&p.ValidValues) })},
	{"steps", eachRange(func(r *resourceapi.CapacityRequestPolicyRange) bool { return replace(&r.Step, nil) })},
	{"maximum", eachRange(func(r *resourceapi.CapacityRequestPolicyRange) bool { return replace(&r.Max, nil) })},
	{"shares", func(c *Case) bool { return empty(&c.Shares) }},
	{"shares without capacity", stripBareShares},
}

// replace sets a field and says whether that changed it.
func replace[T comparable](field *T, value T) bool {
	changed := *field != value
	*field = value
	return changed
}

// empty empties a list and says whether it was not empty.
func empty[T any](field *[]T) bool {
	changed := len(*field) > 0
	*field = nil
	return changed
}

func isTrue(b *bool) bool { return b != nil && *b }

func eachClaim(strip func(*resourceapi.DeviceClaim) bool) func(*Case) bool {
	return func(c *Case) bool {
		changed := false
		for _, claim := range c.Claims {
			changed = strip(&claim.Spec.Devices) || changed
		}
		return changed
	}
}

func eachRequest(strip func(*resourceapi.ExactDeviceRequest) bool) func(*Case) bool {
	return func(c *Case) bool { return c.EditRequests(strip) }
}

func eachDevice(strip func(*resourceapi.Device) bool) func(*Case) bool {
	return func(c *Case) bool {
		changed := false
		c.Devices(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
			changed = strip(d) || changed
			return true
		})
		return changed
	}
}

func eachSlice(strip func(*resourceapi.ResourceSliceSpec) bool) func(*Case) bool {
	return func(c *Case) bool {
		changed := false
		for _, slice := range c.Slices {
			changed = strip(&slice.Spec) || changed
		}
		return changed
	}
}

func eachCapacity(strip func(*resourceapi.DeviceCapacity) bool) func(*Case) bool {
	return eachDevice(func(d *resourceapi.Device) bool {
		changed := false
		for name, capacity := range d.Capacity {
			changed = strip(&capacity) || changed
			d.Capacity[name] = capacity
		}
		return changed
	})
}

func eachPolicy(strip func(*resourceapi.CapacityRequestPolicy) bool) func(*Case) bool {
	return eachCapacity(func(c *resourceapi.DeviceCapacity) bool { return c.RequestPolicy != nil && strip(c.RequestPolicy) })
}

func eachRange(strip func(*resourceapi.CapacityRequestPolicyRange) bool) func(*Case) bool {
	return eachPolicy(func(p *resourceapi.CapacityRequestPolicy) bool { return p.ValidRange != nil && strip(p.ValidRange) })
}
