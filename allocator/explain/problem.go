// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
)

// Problem is what an allocation depends on. Nothing of it is modified, and nothing may be
// modified while it is in use. It may be used for several nodes at the same time.
type Problem struct {
	// Claims are to be allocated together, as those of one pod are.
	Claims []*resourceapi.ResourceClaim
	// Allocated are all claims that may have devices. Those without an allocation don't
	// matter.
	Allocated []*resourceapi.ResourceClaim
	// NamesAll: whoever reads the answer may read the claims of all namespaces. Else those of
	// other namespaces than that of Claims are counted and not named: the users of one
	// namespace have no right to know of the objects in another.
	NamesAll  bool
	Classes   structured.DeviceClassLister
	Slices    []*resourceapi.ResourceSlice
	Features  structured.Features
	Selectors *dracel.Cache
	// Options are those of the allocator. A Cache among them makes the searches share what
	// they find out about devices.
	Options []allocator.Option
}

// fits looks for a solution for the claims on the node, with the given claims having their
// devices. Results are nil if there is none.
func (p *Problem) fits(ctx context.Context, node *v1.Node, claims, allocated []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	a, err := allocator.NewAllocator(ctx, p.Features, allocator.AllocatedTo(allocated, p.Features), p.Classes, p.Slices, p.Selectors, p.Options...)
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
