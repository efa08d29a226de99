// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// What the search does not know yet it refuses: allocating while ignoring a
// field could hand out a device twice. A request that uses such a field is an
// error for the pod, a device that does is an error for its node, and only once
// the search needs that device.

const disabled = "has %s, but the %s feature is disabled"

// refuseRequest refuses what the request asks for, first for the reason that a
// feature is off.
func (s *search) refuseRequest(r *request, api *resourceapi.DeviceRequest) error {
	const unsupported = "%s are not supported by this allocator yet"
	switch {
	case len(api.FirstAvailable) > 0 && !s.features.PrioritizedList:
		return r.errorf(disabled, "subrequests", "DRAPrioritizedList")
	case len(api.FirstAvailable) > 0:
		return r.errorf(unsupported, "prioritized lists (firstAvailable)")
	case api.Exactly == nil:
		return r.errorf("neither exactly nor firstAvailable is set (unsupported request type?)")
	case api.Exactly.Capacity != nil && !s.features.ConsumableCapacity:
		return r.errorf(disabled, "capacity requests", "DRAConsumableCapacity")
	case api.Exactly.Capacity != nil:
		return r.errorf(unsupported, "capacity requests")
	case len(api.Exactly.DerivedAttributes) > 0 && !s.features.DerivedAttributes:
		return r.errorf("cannot handle request with derived attributes, the feature is disabled")
	case len(api.Exactly.DerivedAttributes) > 0:
		return r.errorf(unsupported, "derived attributes")
	default:
		return nil
	}
}

// refuseConstraint refuses to compare attributes by the rules for lists.
func (s *search) refuseConstraint(claim *resourceapi.ResourceClaim, index int) error {
	if !s.features.ListTypeAttributes {
		return nil
	}
	return fmt.Errorf("claim %s, constraint #%d: attribute constraints while DRAListTypeAttributes is enabled are not supported by this allocator yet", klog.KObj(claim), index)
}

// refuseDevice refuses devices whose availability depends on other devices or
// other shares of the same one.
func (s *search) refuseDevice(c *candidate) error {
	switch {
	case s.features.PartitionableDevices && len(c.device.ConsumesCounters) > 0:
		return onNode(fmt.Sprintf("device %s consumes shared counters, which this allocator does not support yet", c.id))
	case s.features.ConsumableCapacity && ptr.Deref(c.device.AllowMultipleAllocations, false):
		return onNode(fmt.Sprintf("device %s allows multiple allocations, which this allocator does not support yet", c.id))
	default:
		return nil
	}
}
