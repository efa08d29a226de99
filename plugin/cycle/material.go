// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/demand"
	"github.com/celset/celset/plugin/preparation"
)

// Allocators makes allocators for the pods of a profile.
type Allocators struct {
	Resolver  *Resolver
	Preparing *preparation.Store
	// Asked has the shapes that claims ask for.
	Asked *demand.Shapes
	// Budget limits the search for the devices of one node.
	Budget allocator.Budget
	// Cache is shared by the allocators of all scheduling cycles. It is nil if upstream's allocator serves all pods.
	Cache *allocator.Cache
}

// Features returns the feature gates of the allocators.
func (a *Allocators) Features() structured.Features {
	return dynamicresources.AllocatorFeatures(a.Resolver.Features)
}

// NewAllocator makes an allocator of ours. seen has what is in the cluster, as far as the caller has it.
func (a *Allocators) NewAllocator(ctx context.Context, prepared allocator.Prepared, seen Material, opts ...allocator.Option) (*allocator.Allocator, error) {
	all, err := a.gatherMaterial(ctx, seen)
	if err != nil {
		return nil, err
	}
	if a.Resolver.Enabled {
		opts = append(opts,
			allocator.WithDefaultPreference(a.Resolver.Preference), allocator.WithShapes(a.Asked.Most()))
	} else {
		opts = append(opts, allocator.WithoutDefaultConstraints(), allocator.WithoutPreferences())
	}
	opts = append(opts,
		allocator.WithReasons(), allocator.WithEnvironment(a.Preparing.Environment), allocator.WithPrepared(prepared), allocator.WithCache(a.Cache),
		allocator.WithBudget(a.Budget))
	return allocator.NewAllocator(ctx, a.Features(), *all.Allocated,
		a.Resolver.Manager.DeviceClasses(), all.slices, prepared.SelectorsOr(a.Preparing.Selectors), opts...)
}

// NewUpstreams makes an allocator of upstream's, which gets the selectors that were compiled.
func (a *Allocators) NewUpstreams(ctx context.Context, prepared allocator.Prepared, seen Material) (structured.Allocator, error) {
	all, err := a.gatherMaterial(ctx, seen)
	if err != nil {
		return nil, err
	}
	return structured.NewAllocator(ctx, a.Features(), *all.Allocated, a.Resolver.Manager.DeviceClasses(), all.slices, prepared.SelectorsOr(a.Preparing.Selectors))
}

const (
	gatherInterval = time.Millisecond
	gatherTimeout  = 5 * time.Second
)

// gatherMaterial asks for what upstream's PreFilter was not seen to be given.
func (a *Allocators) gatherMaterial(ctx context.Context, seen Material) (Material, error) {
	var err error
	if seen.Allocated == nil {
		if seen.Allocated, err = a.AllocatedState(ctx); err != nil {
			return Material{}, err
		}
	}
	if seen.slices == nil {
		seen.slices, err = a.Resolver.Manager.ResourceSlices().ListWithDeviceTaintRules()
	}
	return seen, err
}

// AllocatedState asks the claim tracker, which all profiles of the process
// share, what is allocated or about to be. The tracker gives up when allocations
// change while it looks; then it is asked again.
func (a *Allocators) AllocatedState(ctx context.Context) (*structured.AllocatedState, error) {
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

func (a *Allocators) gather() (*structured.AllocatedState, error) {
	tracker := a.Resolver.Manager.ResourceClaims()
	if a.Resolver.Features.EnableDRAConsumableCapacity {
		return tracker.GatherAllocatedState()
	}
	devices, err := tracker.ListAllAllocatedDevices()
	if err != nil {
		return nil, err
	}
	return exclusively(devices), nil
}
