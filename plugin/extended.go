// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator/extended"
)

// Upstream's plugin makes the claim for extended resources in Filter, for one node, and hands it to
// the allocator. Whether constraints hold for it, and how nearly it was met, has to be known without
// a node.

// extendedClaim is nil if there is nothing to request.
func (pl *DynamicResourcesCEL) extendedClaim(pod *v1.Pod) *resourceapi.ResourceClaim {
	if !pl.features.EnableDRAExtendedResource {
		return nil
	}
	return extended.Claim(pod, pl.claims.DeviceClassResolver().GetDeviceClass)
}

// providesExtended tells whether the node has an extended resource of the pod without devices, so
// that the claim which is made for this node is another one.
func (pl *DynamicResourcesCEL) providesExtended(pod *v1.Pod, node fwk.NodeInfo) bool {
	return pl.features.EnableDRAExtendedResource &&
		slices.ContainsFunc(extended.Resources(pod, pl.claims.DeviceClassResolver().GetDeviceClass), func(name v1.ResourceName) bool {
			return node.GetAllocatable().GetScalarResources()[name] > 0
		})
}
