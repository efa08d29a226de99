// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"github.com/celset/celset/plugin/preparation"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/demand"
)

// allocators makes allocators for the pods of a profile.
type allocators struct {
	resolver  *resolver
	preparing *preparation.Store
	// asked has the shapes that claims ask for.
	asked *demand.Shapes
	// budget limits the search for the devices of one node.
	budget allocator.Budget
	// cache is shared by the allocators of all scheduling cycles. It is nil if upstream's allocator serves all pods.
	cache *allocator.Cache
}

// features returns the feature gates of the allocators.
func (a *allocators) features() structured.Features {
	return dynamicresources.AllocatorFeatures(a.resolver.features)
}

// newAllocator makes an allocator of ours. seen has what is in the cluster, as far as the caller has it.
func (a *allocators) newAllocator(ctx context.Context, prepared allocator.Prepared, seen material, opts ...allocator.Option) (*allocator.Allocator, error) {
	all, err := a.gatherMaterial(ctx, seen)
	if err != nil {
		return nil, err
	}
	if a.resolver.enabled {
		opts = append(opts,
			allocator.WithDefaultPreference(a.resolver.preference), allocator.WithShapes(a.asked.Most()))
	} else {
		opts = append(opts, allocator.WithoutDefaultConstraints(), allocator.WithoutPreferences())
	}
	opts = append(opts,
		allocator.WithReasons(), allocator.WithEnvironment(a.preparing.Environment), allocator.WithPrepared(prepared), allocator.WithCache(a.cache),
		allocator.WithBudget(a.budget))
	return allocator.NewAllocator(ctx, a.features(), *all.allocated,
		a.resolver.manager.DeviceClasses(), all.slices, prepared.SelectorsOr(a.preparing.Selectors), opts...)
}

// newUpstreams makes an allocator of upstream's, which gets the selectors that were compiled.
func (a *allocators) newUpstreams(ctx context.Context, prepared allocator.Prepared, seen material) (structured.Allocator, error) {
	all, err := a.gatherMaterial(ctx, seen)
	if err != nil {
		return nil, err
	}
	return structured.NewAllocator(ctx, a.features(), *all.allocated, a.resolver.manager.DeviceClasses(), all.slices, prepared.SelectorsOr(a.preparing.Selectors))
}

const (
	gatherInterval = time.Millisecond
	gatherTimeout  = 5 * time.Second
)

// gatherMaterial asks for what upstream's PreFilter was not seen to be given.
func (a *allocators) gatherMaterial(ctx context.Context, seen material) (material, error) {
	var err error
	if seen.allocated == nil {
		if seen.allocated, err = a.allocatedState(ctx); err != nil {
			return material{}, err
		}
	}
	if seen.slices == nil {
		seen.slices, err = a.resolver.manager.ResourceSlices().ListWithDeviceTaintRules()
	}
	return seen, err
}

// allocatedState asks the claim tracker, which all profiles of the process
// share, what is allocated or about to be. The tracker gives up when allocations
// change while it looks; then it is asked again.
func (a *allocators) allocatedState(ctx context.Context) (*structured.AllocatedState, error) {
	var state *structured.AllocatedState
	var conflict error
	err := wait.PollUntilContextTimeout(ctx, gatherInterval, gatherTimeout, true, func(context.Context) (bool, error) {
		state, conflict = a.gather()
		return conflict == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("gather allocation state: %w (last attempt: %w)", err, conflict)
	}
	return state, nil
}

func (a *allocators) gather() (*structured.AllocatedState, error) {
	tracker := a.resolver.manager.ResourceClaims()
	if a.resolver.features.EnableDRAConsumableCapacity {
		return tracker.GatherAllocatedState()
	}
	devices, err := tracker.ListAllAllocatedDevices()
	if err != nil {
		return nil, err
	}
	return exclusively(devices), nil
}
