// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func stripBindingConditions(d *resourceapi.Device) bool {
	d.BindingFailureConditions = nil
	return empty(&d.BindingConditions)
}

// stripLists replaces a list by its first element.
func stripLists(d *resourceapi.Device) bool {
	changed := false
	for name, a := range d.Attributes {
		var scalar resourceapi.DeviceAttribute
		switch {
		case len(a.StringValues) > 0:
			scalar.StringValue = &a.StringValues[0]
		case len(a.IntValues) > 0:
			scalar.IntValue = &a.IntValues[0]
		case len(a.BoolValues) > 0:
			scalar.BoolValue = &a.BoolValues[0]
		case len(a.VersionValues) > 0:
			scalar.VersionValue = &a.VersionValues[0]
		default:
			continue
		}
		d.Attributes[name] = scalar
		changed = true
	}
	return changed
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

func stripSecondCounterSet(d *resourceapi.Device) bool {
	changed := len(d.ConsumesCounters) > 1
	d.ConsumesCounters = d.ConsumesCounters[:min(1, len(d.ConsumesCounters))]
	return changed
}

// stripAllocatedConsumers makes allocated devices consume nothing.
func stripAllocatedConsumers(c *Case) bool {
	return stripConsumers(c, func(*resourceapi.ResourceSlice, *resourceapi.Device) bool { return true })
}

// stripConsumersElsewhere does so with those for other nodes.
func stripConsumersElsewhere(c *Case) bool {
	return stripConsumers(c, func(s *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
		if isTrue(s.Spec.PerDeviceNodeSelection) {
			return !isHere(d.NodeName, d.AllNodes, d.NodeSelector)
		}
		return !isHere(s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector)
	})
}

// isHere knows the placements that are drawn.
func isHere(name *string, all *bool, selector *v1.NodeSelector) bool {
	if selector == nil {
		return ptr.Deref(name, "") == nodeName || isTrue(all)
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(r v1.NodeSelectorRequirement) bool {
			return slices.Contains(r.Values, "zone-1")
		})
	})
}

func stripConsumers(c *Case, of func(*resourceapi.ResourceSlice, *resourceapi.Device) bool) bool {
	allocated := slices.Clone(c.Allocated)
	for _, share := range c.Shares {
		allocated = append(allocated, share.Device)
	}
	changed := false
	c.Devices(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
		id := Device{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name}
		if of(slice, d) && slices.Contains(allocated, id) {
			changed = empty(&d.ConsumesCounters) || changed
		}
		return true
	})
	return changed
}

func stripGroups(d *resourceapi.Device) bool {
	changed := false
	for i := range d.ConsumesCounters {
		changed = empty(&d.ConsumesCounters[i].CompatibilityGroups) || changed
	}
	return changed
}

// stripBareShares makes devices that only have shares without capacity unshared.
func stripBareShares(c *Case) bool {
	before := len(c.Shares)
	c.Shares = slices.DeleteFunc(c.Shares, func(s Share) bool { return s.Consumed == nil })
	return len(c.Shares) < before
}
