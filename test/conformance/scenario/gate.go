// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Gate is an optional feature.
type Gate struct {
	Name string
	// Of is the gate's place in the features of a case.
	Of func(*structured.Features) *bool
	// IsUsed tells whether the case has anything to which the feature can matter.
	IsUsed func(*Case) bool
}

// Gates are all optional features. Comparing the outcomes with a feature on and
// off shows whether it mattered.
var Gates = []Gate{
	{"AdminAccess", func(f *structured.Features) *bool { return &f.AdminAccess }, anyRequest(func(r *resourceapi.ExactDeviceRequest) bool { return r.AdminAccess != nil })},
	{"CompatibilityGroups", func(f *structured.Features) *bool { return &f.CompatibilityGroups }, anyDevice(hasGroups)},
	{"ConsumableCapacity", func(f *structured.Features) *bool { return &f.ConsumableCapacity }, func(*Case) bool { return true }},
	{"DerivedAttributes", func(f *structured.Features) *bool { return &f.DerivedAttributes }, anyRequest(func(r *resourceapi.ExactDeviceRequest) bool { return len(r.DerivedAttributes) > 0 })},
	{"DeviceBindingAndStatus", func(f *structured.Features) *bool { return &f.DeviceBindingAndStatus }, anyDevice(func(d *resourceapi.Device) bool { return len(d.BindingConditions) > 0 })},
	{"DeviceTaints", func(f *structured.Features) *bool { return &f.DeviceTaints }, anyDevice(func(d *resourceapi.Device) bool { return len(d.Taints) > 0 })},
	{"FractionalCapacityRange", func(f *structured.Features) *bool { return &f.FractionalCapacityRange }, anyDevice(hasPolicy)},
	{"ListTypeAttributes", func(f *structured.Features) *bool { return &f.ListTypeAttributes }, usesLists},
	{"OptionalNodeOperations", func(f *structured.Features) *bool { return &f.OptionalNodeOperations }, anySlice(func(s *resourceapi.ResourceSliceSpec) bool { return len(s.SkipNodeOperations) > 0 })},
	{"PartitionableDevices", func(f *structured.Features) *bool { return &f.PartitionableDevices }, isPartitionable},
	{"PrioritizedList", func(f *structured.Features) *bool { return &f.PrioritizedList }, hasPrioritizedList},
}

// Flip returns the case with the feature off if it was on, and the reverse. The
// copy is shallow.
func (gate Gate) Flip(c *Case) *Case {
	result := *c
	on := gate.Of(&result.Features)
	*on = !*on
	return &result
}

func anyRequest(is func(*resourceapi.ExactDeviceRequest) bool) func(*Case) bool {
	return func(c *Case) bool {
		for _, claim := range c.Claims {
			for _, request := range claim.Spec.Devices.Requests {
				found := false
				byName([]resourceapi.DeviceRequest{request}, request.Name, func(r *resourceapi.ExactDeviceRequest) { found = found || is(r) })
				if found {
					return true
				}
			}
		}
		return false
	}
}

func anyDevice(is func(*resourceapi.Device) bool) func(*Case) bool {
	return func(c *Case) bool {
		found := false
		c.Devices(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
			found = is(d)
			return !found
		})
		return found
	}
}

func anySlice(is func(*resourceapi.ResourceSliceSpec) bool) func(*Case) bool {
	return func(c *Case) bool {
		return slices.ContainsFunc(c.Slices, func(s *resourceapi.ResourceSlice) bool { return is(&s.Spec) })
	}
}

func hasGroups(d *resourceapi.Device) bool {
	return slices.ContainsFunc(d.ConsumesCounters, func(c resourceapi.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
}

func hasPolicy(d *resourceapi.Device) bool {
	for _, capacity := range d.Capacity {
		if capacity.RequestPolicy != nil {
			return true
		}
	}
	return false
}

// usesLists also counts attributes of no known type, which have no elements.
func usesLists(c *Case) bool {
	isScalar := func(a resourceapi.DeviceAttribute) bool {
		return a.StringValue != nil || a.IntValue != nil || a.BoolValue != nil || a.VersionValue != nil
	}
	return anyDevice(func(d *resourceapi.Device) bool {
		for _, attribute := range d.Attributes {
			if !isScalar(attribute) {
				return true
			}
		}
		return false
	})(c) || anyRequest(func(r *resourceapi.ExactDeviceRequest) bool { return len(r.DerivedAttributes) > 0 })(c)
}

func isPartitionable(c *Case) bool {
	return anySlice(func(s *resourceapi.ResourceSliceSpec) bool {
		return s.PerDeviceNodeSelection != nil || len(s.SharedCounters) > 0
	})(c) || anyDevice(func(d *resourceapi.Device) bool { return len(d.ConsumesCounters) > 0 })(c)
}

func hasPrioritizedList(c *Case) bool {
	return slices.ContainsFunc(c.Claims, func(claim *resourceapi.ResourceClaim) bool {
		return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
	})
}
