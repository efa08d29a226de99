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

// Allocator implements [structured.Allocator]. It is safe for concurrent use and
// may be used for any number of nodes and claims.
type Allocator struct {
	planner *plan.Planner
	counts  counts
}

var _ structured.Allocator = &Allocator{}

// NewAllocator takes what [structured.NewAllocator] takes and, besides, options.
// Nothing of what it is given is modified, and nothing may be modified while the
// Allocator is in use. A class is looked up once: an Allocator sees it as it was then.
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
// The result has one entry a claim, or is nil if the claims do not fit on the
// node; with [WithReasons] the latter is an error that wraps
// [structured.ErrFailedAllocationOnNode]. Any other error is the same for all
// nodes: the claims, their classes or the devices they meet are at fault, or a
// limit was crossed. When ctx ends, the error wraps its error.
func (a *Allocator) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	results, _, err := a.AllocateWithStats(ctx, node, claims)
	return results, err
}

// AllocateWithStats is Allocate, and tells what work that call did, whatever its
// outcome.
func (a *Allocator) AllocateWithStats(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, Stats, error) {
	results, details, err := a.AllocateWithDetails(ctx, node, claims)
	return results, details.Stats, err
}

// AllocateWithDetails is AllocateWithStats, and tells what preferences say of the results.
func (a *Allocator) AllocateWithDetails(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) (results []resourceapi.AllocationResult, details Details, err error) {
	logger := klog.FromContext(ctx)
	logger.V(5).Info("Starting allocation", "claims", len(claims))
	defer func() {
		logger.V(5).Info("Done with allocation", "success", err == nil && len(results) == len(claims), "err", err)
	}()

	on, err := a.planner.PlanFor(claims).On(node)
	if err != nil {
		return nil, details, err
	}
	kept := on.AnswerEntry()
	if known := plan.KnownRefusal(kept); known != nil {
		details.Stats = Stats{CacheHits: 1, AnswersKnown: 1}
		a.counts.add(details.Stats)
		if known.Failure != nil {
			return nil, details, a.planner.Failure(on.FailureHere(known.Failure))
		}
		return nil, details, known.Refusal
	}
	s, err := objective.New(ctx, on)
	if err != nil {
		return nil, details, err
	}
	results, err = s.Allocate(kept)
	details = s.Details()
	a.counts.add(details.Stats)
	if err != nil {
		details.Outcome, details.Preferences = "", nil
	}
	return results, details, err
}

// Without is the allocator for the time when some claims have given back their devices, for those
// who want to know what would fit then. What each of the claims is said to have must be in use and
// must not be given back by two of them. It looks at the claims and slices of this allocator and
// shares its budgets; making it costs about as much as the claims have devices.
func (a *Allocator) Without(claims ...*resourceapi.ResourceClaim) *Allocator {
	return &Allocator{planner: a.planner.In(a.planner.State.Without(AllocatedTo(claims, a.planner.Features)))}
}

// With returns the allocator for the time when the results are in use, too. It shares what Without shares; making it costs
// about as much as there are allocated devices in the cluster.
func (a *Allocator) With(results ...resourceapi.AllocationResult) *Allocator {
	taken := AllocatedTo(nil, a.planner.Features)
	for i := range results {
		AddAllocated(&taken, results[i].Devices.Results, a.planner.Features)
	}
	return &Allocator{planner: a.planner.In(a.planner.State.With(taken))}
}

// Knowing returns the allocator with more claims that were prepared.
func (a *Allocator) Knowing(more Prepared) *Allocator {
	return &Allocator{planner: a.planner.Knowing(more)}
}

// CheckConstraints finds out, without looking at any device, whether the CEL
// constraints of the claims are defined, and whether they and the preferences that are about the
// claims are well-formed and compile.
func (a *Allocator) CheckConstraints(claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		if _, err := a.planner.Resolved(claim).Definitions(); err != nil {
			return err
		}
	}
	return nil
}

// RefusalsOf returns nil if nothing is ever known of such claims: one of them has no CEL constraint, or their answers are not
// kept.
func (a *Allocator) RefusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	return a.planner.RefusalsOf(claims)
}

// counts adds up what searches that run at the same time did.
type counts struct {
	mutex sync.Mutex
	sum   Stats
}

func (c *counts) add(s Stats) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sum = answer.Sum(c.sum, s)
}

// Stats returns the counts so far.
func (a *Allocator) Stats() Stats {
	a.counts.mutex.Lock()
	defer a.counts.mutex.Unlock()
	return a.counts.sum
}

// PolicyValues tells what policies say of the devices that a claim has on a node: what
// [Allocator.AllocateWithDetails] would tell of them if it chose these devices now. So the Allocator must
// take them for free. What a policy thought of them when they were chosen may have been something
// else, for others were in use.
//
// Preferences that are expressions are left out: they depend on nothing but the devices. The error is one
// that Allocate would return for the claim on any node, or one of the devices is not there.
func (a *Allocator) PolicyValues(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim) ([]PreferenceValue, error) {
	return objective.PolicyValues(ctx, a.planner, node, claim)
}
