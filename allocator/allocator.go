// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/objective"
	"github.com/celset/celset/allocator/internal/plan"
)

// Allocator implements [structured.Allocator]. It is safe for concurrent use, for any number of nodes and claims.
type Allocator struct {
	planner *plan.Planner
	counts  counts
}

var _ structured.Allocator = &Allocator{}

// NewAllocator has the parameters of [structured.NewAllocator] followed by options. It does not modify its arguments, and
// callers must not modify them while the Allocator is in use. The Allocator looks up each class once and keeps that version.
func NewAllocator(ctx context.Context,
	features structured.Features,
	allocatedState structured.AllocatedState,
	classLister structured.DeviceClassLister,
	slices []*resourceapi.ResourceSlice,
	celCache *dracel.Cache,
	opts ...Option,
) (*Allocator, error) {
	options := plan.DefaultOptions()
	for _, opt := range opts {
		opt(&options)
	}
	p, err := plan.New(ctx, features, allocatedState, classLister, slices, celCache, options)
	if err != nil {
		return nil, err
	}
	return &Allocator{planner: p}, nil
}

// Allocate implements [structured.Allocator].
//
// It returns one result for each claim. If the claims don't fit on the node, it returns nil. With [WithReasons] it returns an
// error that wraps [structured.ErrFailedAllocationOnNode] instead. Any other error means that the attempt fails on all nodes:
// the claims, their classes or the tried devices are invalid, or a limit was exceeded. If ctx ends, the error wraps its error.
func (a *Allocator) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	results, _, err := a.AllocateWithStats(ctx, node, claims)
	return results, err
}

// AllocateWithStats is like Allocate and also returns the work that the call did, even if the call fails.
func (a *Allocator) AllocateWithStats(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, Stats, error) {
	results, details, err := a.AllocateWithDetails(ctx, node, claims)
	return results, details.Stats, err
}

// AllocateWithDetails is like Allocate and also returns the work of the call and the values of preferences for the results.
func (a *Allocator) AllocateWithDetails(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, Details, error) {
	_, results, details, err := a.allocate(ctx, node, claims)
	return results, details, err
}

// allocate is like AllocateWithDetails and also returns the search. s is nil if the cache had stored that the claims don't fit.
func (a *Allocator) allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) (s *objective.Optimization, results []resourceapi.AllocationResult, details Details, err error) {
	logger := klog.FromContext(ctx)
	logger.V(5).Info("Starting allocation", "claims", len(claims))
	defer func() {
		logger.V(5).Info("Done with allocation", "success", err == nil && len(results) == len(claims), "err", err)
	}()

	on, err := a.planner.PlanFor(claims).On(node)
	if err != nil {
		return nil, nil, details, err
	}
	kept := on.AnswerEntry()
	if known := plan.KnownRefusal(kept); known != nil {
		details.Stats = Stats{CacheHits: 1, AnswersKnown: 1}
		a.counts.add(details.Stats)
		if known.Failure != nil {
			return nil, nil, details, a.planner.Failure(on.FailureHere(known.Failure))
		}
		return nil, nil, details, known.Refusal
	}
	s, err = objective.New(ctx, on)
	if err != nil {
		return nil, nil, details, err
	}
	results, err = s.Allocate(kept)
	details = s.Details()
	a.counts.add(details.Stats)
	if err != nil {
		details.Outcome, details.Preferences = "", nil
	}
	return s, results, details, err
}

// Without returns an allocator for the state after the given claims have given back their devices. All devices of the claims
// must be in use, and no two of the claims may give back the same device. The new allocator shares claims, slices and budgets
// with a. Creating it takes time in proportion to the devices of the given claims.
func (a *Allocator) Without(claims ...*resourceapi.ResourceClaim) *Allocator {
	return &Allocator{planner: a.planner.In(a.planner.State.Without(AllocatedTo(claims, a.planner.Features)))}
}

// With returns an allocator for the state with the results in use. It shares claims, slices and budgets with a. Creating it
// takes time in proportion to the allocated devices of the cluster.
func (a *Allocator) With(results ...resourceapi.AllocationResult) *Allocator {
	taken := AllocatedTo(nil, a.planner.Features)
	for i := range results {
		AddAllocated(&taken, results[i].Devices.Results, a.planner.Features)
	}
	return &Allocator{planner: a.planner.In(a.planner.State.With(taken))}
}

// WithPrepared returns an allocator that uses the prepared claims in more in addition to its own.
func (a *Allocator) WithPrepared(more Prepared) *Allocator {
	return &Allocator{planner: a.planner.WithPrepared(more)}
}

// CheckConstraints returns an error if a CEL constraint of the claims is not defined, or if a constraint or preference is
// malformed or does not compile. It reads no devices.
func (a *Allocator) CheckConstraints(claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		if _, err := a.planner.Resolved(claim).Definitions(); err != nil {
			return err
		}
	}
	return nil
}

// RefusalsOf returns the cached refusals of claims. It returns nil if Allocate never caches a result for these claims, for
// example because no claim has a CEL constraint.
func (a *Allocator) RefusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	return a.planner.RefusalsOf(claims)
}

// counts adds up the work of concurrent calls.
type counts struct {
	mutex sync.Mutex
	sum   Stats
}

func (c *counts) add(s Stats) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sum = answer.Sum(c.sum, s)
}

// Stats returns the work of all calls so far.
func (a *Allocator) Stats() Stats {
	a.counts.mutex.Lock()
	defer a.counts.mutex.Unlock()
	return a.counts.sum
}

// PolicyValues returns the values of policies for the devices allocated to a claim on a node. The devices must be free in the
// state of the Allocator. [Allocator.AllocateWithDetails] would return the same values if it chose these devices now. The
// values may differ from the values at the time of the allocation, because other devices were in use then.
//
// PolicyValues leaves out preferences that are expressions, because their values depend only on the devices. It returns an
// error if a device is missing, or if Allocate would fail on all nodes.
func (a *Allocator) PolicyValues(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim) ([]PreferenceValue, error) {
	return objective.PolicyValues(ctx, a.planner, node, claim)
}
