// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// Trait is something that may make a case interesting.
type Trait struct {
	Name string
	// Strip removes the trait from a case, which is modified, and says whether there
	// was anything to remove. Comparing the outcomes with and without it shows
	// whether the trait mattered.
	Strip func(*Case) bool
}

// Traits are all traits that are known.
var Traits = []Trait{
	{"several claims", stripClaims},
	{"several requests", eachClaim(stripRequests)},
	{"count above one", eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return replace(&r.Count, min(r.Count, 1)) })},
	{"count zero", eachRequest(stripZero)},
	{"all devices", eachRequest(stripAll)},
	{"admin access", eachRequest(stripAdminAccess)},
	{"request selectors", eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return empty(&r.Selectors) })},
	{"class selectors", stripClassSelectors},
	{"class configuration", stripClassConfiguration},
	{"claim configuration", eachClaim(func(d *resourceapi.DeviceClaim) bool { return empty(&d.Config) })},
	{"match attribute", eachClaim(stripConstraints(func(c resourceapi.DeviceConstraint) bool { return c.MatchAttribute != nil && !isReference(c) }))},
	{"distinct attribute", eachClaim(stripConstraints(func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil }))},
	{"CEL constraint", eachClaim(stripConstraints(isReference))},
	{"constraint over some requests", eachClaim(stripConstraints(func(c resourceapi.DeviceConstraint) bool { return len(c.Requests) > 0 }))},
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
	return func(c *Case) bool {
		changed := false
		c.Requests(func(_ *resourceapi.ResourceClaim, r *resourceapi.ExactDeviceRequest) bool {
			changed = strip(r) || changed
			return true
		})
		return changed
	}
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

func stripClaims(c *Case) bool {
	changed := len(c.Claims) > 1
	c.Claims = c.Claims[:min(1, len(c.Claims))]
	return changed
}

func stripRequests(d *resourceapi.DeviceClaim) bool {
	changed := len(d.Requests) > 1
	d.Requests = d.Requests[:min(1, len(d.Requests))]
	return changed
}

func stripZero(r *resourceapi.ExactDeviceRequest) bool {
	changed := r.Count == 0 && r.AllocationMode == resourceapi.DeviceAllocationModeExactCount
	if changed {
		r.Count = 1
	}
	return changed
}

func stripAll(r *resourceapi.ExactDeviceRequest) bool {
	changed := r.AllocationMode == resourceapi.DeviceAllocationModeAll
	if changed {
		r.AllocationMode, r.Count = resourceapi.DeviceAllocationModeExactCount, 1
	}
	return changed
}

func stripAdminAccess(r *resourceapi.ExactDeviceRequest) bool {
	changed := ptr.Deref(r.AdminAccess, false)
	r.AdminAccess = nil
	return changed
}

func stripClassSelectors(c *Case) bool {
	changed := false
	for _, class := range c.Classes {
		changed = empty(&class.Spec.Selectors) || changed
	}
	return changed
}

func stripClassConfiguration(c *Case) bool {
	changed := false
	for _, class := range c.Classes {
		changed = empty(&class.Spec.Config) || changed
	}
	return changed
}

func stripConstraints(of func(resourceapi.DeviceConstraint) bool) func(*resourceapi.DeviceClaim) bool {
	return func(d *resourceapi.DeviceClaim) bool {
		before := len(d.Constraints)
		d.Constraints = slices.DeleteFunc(d.Constraints, of)
		return len(d.Constraints) < before
	}
}

func stripTolerations(c *Case) bool {
	hasTaints := false
	c.Devices(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
		hasTaints = hasTaints || len(d.Taints) > 0
		return !hasTaints
	})
	return eachRequest(func(r *resourceapi.ExactDeviceRequest) bool { return empty(&r.Tolerations) })(c) && hasTaints
}

func stripBindingConditions(d *resourceapi.Device) bool {
	d.BindingFailureConditions = nil
	return empty(&d.BindingConditions)
}

func stripPerDevice(s *resourceapi.ResourceSliceSpec) bool {
	if s.PerDeviceNodeSelection == nil {
		return false
	}
	s.PerDeviceNodeSelection, s.AllNodes = nil, ptr.To(true)
	return true
}

func stripNodeSelector(s *resourceapi.ResourceSliceSpec) bool {
	if s.NodeSelector == nil {
		return false
	}
	s.NodeSelector, s.AllNodes = nil, ptr.To(true)
	return true
}

// stripElsewhere moves the slices of another node to this one.
func stripElsewhere(s *resourceapi.ResourceSliceSpec) bool {
	if ptr.Deref(s.NodeName, nodeName) == nodeName {
		return false
	}
	s.NodeName = ptr.To(nodeName)
	return true
}

func stripPools(c *Case) bool {
	before := len(c.Slices)
	c.Slices = slices.DeleteFunc(c.Slices, func(s *resourceapi.ResourceSlice) bool {
		return s.Spec.Driver != gpuDriver || s.Spec.Pool.Name != poolNames[0]
	})
	return len(c.Slices) < before
}

// stripSliceNames orders the names as the slices are listed.
func stripSliceNames(c *Case) bool {
	names := make([]string, len(c.Slices))
	for i, slice := range c.Slices {
		names[i] = slice.Name
	}
	changed := !slices.IsSorted(names)
	slices.Sort(names)
	for i, slice := range c.Slices {
		slice.Name = names[i]
	}
	return changed
}

// stripOlder makes old slices current. Deleting them should not matter at all.
func stripOlder(s *resourceapi.ResourceSliceSpec) bool {
	return replace(&s.Pool.Generation, max(s.Pool.Generation, latestGeneration))
}

func stripNewer(c *Case) bool {
	before := len(c.Slices)
	c.Slices = slices.DeleteFunc(c.Slices, func(s *resourceapi.ResourceSlice) bool {
		return s.Spec.Pool.Generation > latestGeneration
	})
	return len(c.Slices) < before
}

func stripCounters(c *Case) bool {
	sets := eachSlice(func(s *resourceapi.ResourceSliceSpec) bool { return empty(&s.SharedCounters) })(c)
	return eachDevice(func(d *resourceapi.Device) bool { return empty(&d.ConsumesCounters) })(c) || sets
}
