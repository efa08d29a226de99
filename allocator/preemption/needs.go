// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

// Needs returns an entry for each request that lacks devices on a node: the number of missing devices, and the number of
// suitable devices that each victim has. It returns nil if a request has alternatives, admin access or allocationMode All. It
// also returns nil if devices may be in use in part, because the effect of freeing such devices is uncertain.
func Needs(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim, has []sets.Set[structured.DeviceID]) []Need {
	for _, claim := range claims {
		if slices.ContainsFunc(claim.Spec.Devices.Requests, func(request resourceapi.DeviceRequest) bool {
			return request.Exactly == nil || ptr.Deref(request.Exactly.AdminAccess, false) || request.Exactly.AllocationMode != resourceapi.DeviceAllocationModeExactCount
		}) {
			return nil
		}
	}
	if !a.HasPlainDevices(node) {
		return nil
	}
	requests, err := a.RequestDevices(ctx, node, claims)
	if err != nil {
		return nil
	}
	var needs []Need
	for _, request := range requests {
		need := Need{Missing: request.Wanted - len(request.Free), Gives: make([]int, len(has))}
		if need.Missing <= 0 {
			continue
		}
		for i := range has {
			for _, id := range request.Matching {
				if has[i].Has(id) {
					need.Gives[i]++
				}
			}
		}
		needs = append(needs, need)
	}
	return needs
}
