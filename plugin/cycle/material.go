// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"context"
	"fmt"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/demand"
	"github.com/celset/celset/plugin/preparation"
)

// For each pod, upstream's PreFilter copies the names of all devices in use and the list of all slices. In a large cluster,
// these are hundreds of thousands of words. A second copy for celset's allocator would double the cost of each scheduling cycle
// and the memory of each pod that is being bound. So a Recorder wraps the scheduler's lists and keeps the copies that
// upstream's plugin gets.

// Material holds the lists that an allocator reads. They must not be modified.
type Material struct {
	Allocated *structured.AllocatedState
	slices    []*resourceapi.ResourceSlice
}

// During runs preFilter, which is upstream's PreFilter, and returns the lists that it read. The devices returned by kept are
// added to the devices in use. During calls kept after each listing of the devices in use.
func (o *Recorder) During(kept func() []resourceapi.DeviceRequestAllocationResult, preFilter func()) *Material {
	o.recording.Lock()
	defer o.recording.Unlock()
	seen := &Material{}
	o.set(seen, kept)
	defer o.set(nil, nil)
	preFilter()
	return seen
}

func (o *Recorder) set(seen *Material, kept func() []resourceapi.DeviceRequestAllocationResult) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.seen, o.reserved = seen, kept
}

// listInUse lists the devices in use, adds the devices returned by kept, and records the result. list returns a copy, so
// listInUse may modify it.
func (o *Recorder) listInUse(features structured.Features, list func() (*structured.AllocatedState, error)) (*structured.AllocatedState, error) {
	for {
		ends := o.ends()
		state, err := list()
		if err != nil {
			return nil, err
		}
		o.mutex.Lock()
		seen, kept := o.seen, o.reserved
		o.mutex.Unlock()
		if seen == nil {
			return state, nil
		}
		allocator.AddAllocated(state, kept(), features)
		if ends != o.ends() {
			// A write was settled meanwhile. Its devices may be missing from both lists, so both are read again.
			continue
		}
		o.mutex.Lock()
		defer o.mutex.Unlock()
		seen.Allocated = state
		return state, nil
	}
}

func (o *Recorder) ends() uint64 {
	if o.Writes == nil {
		return 0
	}
	return o.Writes.Ends()
}

// Allocators makes the allocators for the pods of one profile.
type Allocators struct {
	Resolver  *Resolver
	Preparing *preparation.Store
	// Asked counts the set shapes that the claims of the cluster request.
	Asked *demand.Shapes
	// Budget limits the search on one node.
	Budget allocator.Budget
	// Cache is shared by the allocators of all cycles. It is nil if the profile uses upstream's allocator for all pods.
	Cache *allocator.Cache
}

// Features returns the feature gates for allocators.
func (a *Allocators) Features() structured.Features {
	return dynamicresources.AllocatorFeatures(a.Resolver.Features)
}

// NewAllocator returns celset's allocator. seen holds the lists that the caller already has. NewAllocator reads the other
// lists.
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

// NewUpstreams returns upstream's allocator, which evaluates the compiled selectors of prepared.
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

// gatherMaterial returns seen, and reads the lists that seen lacks.
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

// AllocatedState returns the devices that are allocated or reserved for a claim that is being written. All profiles of the
// process share the claim tracker. If allocations change while the tracker lists them, it returns an error, and AllocatedState
// tries again.
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
