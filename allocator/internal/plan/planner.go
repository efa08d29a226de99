// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// Planner makes plans for an allocator. It is safe for concurrent use.
type Planner struct {
	Options
	Inputs
	State *availability.State
	// shapes provides the claims of shapes and the planner for idle nodes, which the policy KeepWhole uses.
	shapes *shapes
	// lastPlan is the plan that PlanFor returned last.
	lastPlan atomic.Pointer[Plan]
}

// Inputs holds the arguments of [New] except the allocated devices. Planners for different allocated devices share it.
type Inputs struct {
	Features    structured.Features
	Classes     *definition.Classes
	Selectors   *dracel.Cache
	allSlices   []*resourceapi.ResourceSlice
	inventories *inventory.Index
	// ResolvedClaims caches the resolved claims for all calls.
	ResolvedClaims *resolvedClaims
	// compiling is the context for compiling claims that were not prepared. A single Allocate call can't cancel it, because all
	// calls use the compiled claims.
	compiling context.Context
}

// Refusal returns an error with the reason. It returns nil unless the option Reasons is on.
func (a *Planner) Refusal(reason string) error {
	if !a.Reasons {
		return nil
	}
	return answer.DoesNotFit(reason)
}

// Failure returns the failure as an error. It returns nil unless the option Reasons is on.
func (a *Planner) Failure(failure *answer.Error) error {
	if !a.Reasons {
		return nil
	}
	return failure
}

// In returns a planner for the given state of allocated devices.
func (a *Planner) In(state *availability.State) *Planner {
	other := &Planner{Options: a.Options, Inputs: a.Inputs, State: state}
	other.shapes = newShapes(other)
	return other
}

// WithPrepared returns a planner that uses the prepared claims in more in addition to its own.
func (p *Planner) WithPrepared(more definition.Prepared) *Planner {
	knowing := p.In(p.State)
	knowing.Prepared = maps.Clone(p.Prepared)
	if knowing.Prepared == nil {
		knowing.Prepared = definition.Prepared{}
	}
	maps.Copy(knowing.Prepared, more)
	knowing.Classes = &definition.Classes{DeviceClassLister: p.Classes.DeviceClassLister}
	knowing.Classes.AddPrepared(knowing.Prepared)
	knowing.ResolvedClaims = &resolvedClaims{}
	return knowing
}

// New returns a Planner for the arguments of an allocator. It does not modify its arguments.
func New(ctx context.Context,
	features structured.Features,
	allocatedState structured.AllocatedState,
	classLister structured.DeviceClassLister,
	slices []*resourceapi.ResourceSlice,
	celCache *dracel.Cache,
	options Options,
) (*Planner, error) {
	p := &Planner{
		Options: options,
		Inputs: Inputs{
			Features: features, Classes: &definition.Classes{DeviceClassLister: classLister}, Selectors: celCache, allSlices: slices,
			ResolvedClaims: &resolvedClaims{}, compiling: context.WithoutCancel(ctx),
		},
		State: availability.NewState(allocatedState),
	}
	if p.Preference != "" && v1alpha1.PolicyNamed(p.Preference) == nil {
		return nil, fmt.Errorf("default preference: policy %q is unknown: use one of %v", p.Preference, v1alpha1.PreferencePolicies)
	}
	p.Classes.AddPrepared(p.Prepared)
	p.shapes = newShapes(p)
	if p.Environment == nil {
		environment, err := sharedEnvironment()
		if err != nil {
			return nil, err
		}
		p.Environment = environment
	}
	if p.Cache == nil {
		p.Cache = NewCache()
	}
	p.inventories = p.Cache.index.Of(slices)
	return p, nil
}
