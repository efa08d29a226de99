// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Problem is what an allocation depends on, besides the node, for those who have no scheduler
// that keeps account: simulations, explanations, tests. Nothing of it is modified, and nothing
// may be modified while it is in use. It may be used for several nodes at the same time.
type Problem struct {
	// Claims are to be allocated together, as those of one pod are.
	Claims []*resourceapi.ResourceClaim
	// Allocated are all claims that may have devices. Those without an allocation don't
	// matter.
	Allocated []*resourceapi.ResourceClaim
	Classes   structured.DeviceClassLister
	Slices    []*resourceapi.ResourceSlice
	Features  structured.Features
	// Selectors has the compiled selectors.
	Selectors *dracel.Cache
	// Options are those of the allocator. A Cache among them makes searches share what
	// they find out about devices.
	Options []Option
}

// NewAllocator returns an allocator for the problem.
func (p *Problem) NewAllocator(ctx context.Context) (*Allocator, error) {
	return NewAllocator(ctx, p.Features, AllocatedTo(p.Allocated, p.Features), p.Classes, p.Slices, p.Selectors, p.Options...)
}
