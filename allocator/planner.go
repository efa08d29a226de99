// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// planner makes the plans of an [Allocator]. It is safe for concurrent use.
type planner struct {
	options
	inputs
	state *availability.State
	// shapes are the sets that other claims may ask for. options has the list.
	shapes *shapes
	// lastPlan is the plan that was made last.
	lastPlan atomic.Pointer[plan]
}

// inputs are the arguments of [NewAllocator], without the state of allocation. Allocators for other states share them.
type inputs struct {
	features    structured.Features
	classes     *definition.Classes
	selectors   *dracel.Cache
	allSlices   []*resourceapi.ResourceSlice
	inventories *inventory.Index
	// resolvedClaims are compiled and resolved once for all calls.
	resolvedClaims *resolvedClaims
	// compiling is the context for compiling what was not prepared. No single call may cancel the context, because
	// all calls use the result.
	compiling context.Context
}

// refusal is nil unless reasons are wanted.
func (a *planner) refusal(reason string) error {
	if !a.reasons {
		return nil
	}
	return answer.DoesNotFit(reason)
}

// failure is nil unless reasons are wanted.
func (a *planner) failure(failure *answer.Error) error {
	if !a.reasons {
		return nil
	}
	return failure
}

// in returns a planner for another state of allocation.
func (a *planner) in(state *availability.State) *planner {
	other := &planner{options: a.options, inputs: a.inputs, state: state}
	other.shapes = newShapes(other)
	return other
}

// knowing returns a planner with more claims that were prepared.
func (p *planner) knowing(more definition.Prepared) *planner {
	knowing := p.in(p.state)
	knowing.prepared = maps.Clone(p.prepared)
	if knowing.prepared == nil {
		knowing.prepared = definition.Prepared{}
	}
	maps.Copy(knowing.prepared, more)
	knowing.classes = &definition.Classes{DeviceClassLister: p.classes.DeviceClassLister}
	knowing.classes.Seed(knowing.prepared)
	knowing.resolvedClaims = &resolvedClaims{}
	return knowing
}

// newPlanner takes what [NewAllocator] takes.
func newPlanner(ctx context.Context,
	features structured.Features,
	allocatedState structured.AllocatedState,
	classLister structured.DeviceClassLister,
	slices []*resourceapi.ResourceSlice,
	celCache *dracel.Cache,
	options options,
) (*planner, error) {
	p := &planner{
		options: options,
		inputs: inputs{
			features: features, classes: &definition.Classes{DeviceClassLister: classLister}, selectors: celCache, allSlices: slices,
			resolvedClaims: &resolvedClaims{}, compiling: context.WithoutCancel(ctx),
		},
		state: availability.NewState(allocatedState),
	}
	if p.preference != "" && v1alpha1.PolicyNamed(p.preference) == nil {
		return nil, fmt.Errorf("default preference: policy %q is unknown: use one of %v", p.preference, v1alpha1.PreferencePolicies)
	}
	p.classes.Seed(p.prepared)
	p.shapes = newShapes(p)
	if p.environment == nil {
		environment, err := sharedEnvironment()
		if err != nil {
			return nil, err
		}
		p.environment = environment
	}
	if p.cache == nil {
		p.cache = NewCache()
	}
	p.inventories = p.cache.index.Of(slices)
	return p, nil
}
