// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
)

// Problem is an allocation that is to be explained.
type Problem struct {
	allocator.Problem
	// NamesAll: whoever reads the answer may read the claims of all namespaces. Else those of
	// other namespaces than that of Claims are counted and not named: the users of one
	// namespace have no right to know of the objects in another.
	NamesAll bool
}

// fits looks for a solution for the claims on the node, with the given claims having their
// devices. Results are nil if there is none.
func (p *Problem) fits(ctx context.Context, node *v1.Node, claims, allocated []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	with := p.Problem
	with.Allocated = allocated
	a, err := with.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	results, err := a.Allocate(ctx, node, claims)
	if errors.Is(err, structured.ErrFailedAllocationOnNode) {
		return nil, nil
	}
	return results, err
}

func resultsOf(claim *resourceapi.ResourceClaim) []resourceapi.DeviceRequestAllocationResult {
	if claim.Status.Allocation == nil {
		return nil
	}
	return claim.Status.Allocation.Devices.Results
}
