// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
)

// declaresOptionalNodeOperations is what a node declares that can leave out node
// operations (the field skipNodeOperations of a ResourceSlice).
const declaresOptionalNodeOperations = "DRAOptionalNodeOperations"

// IsUsable decides what depends on the device, the node and the request, but not
// on what else is allocated.
func (a *Availability) IsUsable(r *requests.Request, c *inventory.Candidate) bool {
	if len(c.Slice.Spec.SkipNodeOperations) > 0 &&
		(!a.features.OptionalNodeOperations || !slices.Contains(a.node.Status.DeclaredFeatures, declaresOptionalNodeOperations)) {
		return false
	}
	if len(c.Device.ConsumesCounters) > 0 && !a.features.PartitionableDevices {
		return false
	}
	return !a.features.DeviceTaints || tolerated(c.Device.Taints, r.Spec.Tolerations)
}

// tolerated tells whether no taint keeps the device from being allocated.
// Unknown effects don't.
func tolerated(taints []resourceapi.DeviceTaint, tolerations []resourceapi.DeviceToleration) bool {
	for _, taint := range taints {
		if taint.Effect != resourceapi.DeviceTaintEffectNoSchedule && taint.Effect != resourceapi.DeviceTaintEffectNoExecute {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(t resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(t, taint)
		}) {
			return false
		}
	}
	return true
}
