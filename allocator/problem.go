// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Problem holds the inputs of an allocation besides the node, for programs without a scheduler's state: simulations,
// explanations, tests. It is read only, and callers must not modify its objects while it is in use. Several nodes may use it at
// the same time.
type Problem struct {
	// Claims are allocated together, like the claims of one pod.
	Claims []*resourceapi.ResourceClaim
	// Allocated holds all claims that may have devices. Claims without an allocation don't count.
	Allocated []*resourceapi.ResourceClaim
	Classes   structured.DeviceClassLister
	Slices    []*resourceapi.ResourceSlice
	Features  structured.Features
	// Selectors is the cache of compiled selectors.
	Selectors *dracel.Cache
	// Options configures the allocator. With [WithCache] searches share results.
	Options []Option
}

// NewAllocator returns an allocator for the problem.
func (p *Problem) NewAllocator(ctx context.Context) (*Allocator, error) {
	return NewAllocator(ctx, p.Features, AllocatedTo(p.Allocated, p.Features), p.Classes, p.Slices, p.Selectors, p.Options...)
}
