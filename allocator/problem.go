// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Problem holds the inputs of an allocation except the node. It is for programs without a scheduler's state: simulations,
// explanations, tests. Callers must not modify its objects while it is in use. Several nodes may use it at the same time.
type Problem struct {
	// Claims holds the claims to allocate together, such as the claims of one pod.
	Claims []*resourceapi.ResourceClaim
	// Allocated holds the claims whose devices are in use. Claims without an allocation are ignored.
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
