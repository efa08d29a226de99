// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Allocator implements [structured.Allocator]. It is safe for concurrent use and
// may be used for any number of nodes and claims.
type Allocator struct {
	options
	inputs
	state  *availability.State
	counts counts
	// shapes are the sets that other claims may ask for. options has the list.
	shapes *shapes
	// lastPlan is the plan that was made last.
	lastPlan atomic.Pointer[plan]
}

// inputs are the arguments of [NewAllocator], without the state of allocation. Allocators for other states share them.
type inputs struct {
	features    structured.Features
	classes     *seenClasses
	selectors   *dracel.Cache
	allSlices   []*resourceapi.ResourceSlice
	inventories *inventory.Index
	// resolvedClaims are compiled and resolved once for all calls.
	resolvedClaims *resolvedClaims
	// compiling is the context for compiling what was not prepared. No single call may cancel the context, because
	// all calls use the result.
	compiling context.Context
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
	a := &Allocator{
		options: defaultOptions(),
		inputs: inputs{
			features: features, classes: &seenClasses{DeviceClassLister: classLister}, selectors: celCache, allSlices: slices,
			resolvedClaims: &resolvedClaims{}, compiling: context.WithoutCancel(ctx),
		},
		state: availability.NewState(allocatedState),
	}
	for _, opt := range opts {
		opt(&a.options)
	}
	if a.preference != "" && v1alpha1.PolicyNamed(a.preference) == nil {
		return nil, fmt.Errorf("default preference: policy %q is unknown: use one of %v", a.preference, v1alpha1.PreferencePolicies)
	}
	a.classes.seed(a.prepared)
	a.shapes = newShapes(a)
	if a.environment == nil {
		environment, err := sharedEnvironment()
		if err != nil {
			return nil, err
		}
		a.environment = environment
	}
	if a.cache == nil {
		a.cache = NewCache()
	}
	a.inventories = a.cache.index.Of(slices)
	return a, nil
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

	on, err := a.planFor(claims).on(node)
	if err != nil {
		return nil, details, err
	}
	kept := on.answerEntry()
	if known := knownRefusal(kept); known != nil {
		details.Stats = Stats{CacheHits: 1, AnswersKnown: 1}
		a.counts.add(details.Stats)
		if known.failure != nil {
			return nil, details, a.failure(known.failure.on(&on))
		}
		return nil, details, known.refusal
	}
	s, err := newSearch(ctx, on, nil)
	if err != nil {
		return nil, details, err
	}
	results, err = s.allocate(kept)
	if len(s.celConstraints) > 0 {
		s.work.charge()
	}
	details.Stats = s.stats()
	a.counts.add(details.Stats)
	if err == nil {
		details.Outcome, details.Preferences = s.preferred.outcome, s.preferred.values
	}
	return results, details, err
}

// allocate answers, and says so in results or as an error. kept is where the answer is kept, nil if it is not.
func (s *search) allocate(kept *answerEntry) ([]resourceapi.AllocationResult, error) {
	found, reason, err := s.answer(kept)
	failure, isAboutNode := errors.AsType[*EvaluationError](err)
	switch {
	case isAboutNode:
		return nil, s.allocator.failure(failure)
	case err != nil:
		return nil, err
	case found:
		return s.results()
	case slices.ContainsFunc(s.inventory.Pools, func(p *inventory.Pool) bool { return p.Invalid != "" }):
		return nil, doesNotFit("invalid resource pools were encountered")
	default:
		return nil, s.allocator.refusal(reason)
	}
}

// refusal is nil unless reasons are wanted.
func (a *Allocator) refusal(reason string) error {
	if !a.reasons {
		return nil
	}
	return doesNotFit(reason)
}

// failure is nil unless reasons are wanted.
func (a *Allocator) failure(failure *EvaluationError) error {
	if !a.reasons {
		return nil
	}
	return failure
}

// doesNotFit makes an error that concerns the node and not the claims.
func doesNotFit(reason string) error {
	return fmt.Errorf("%s%w", reason, structured.ErrFailedAllocationOnNode)
}

// Without is the allocator for the time when some claims have given back their devices, for those
// who want to know what would fit then. What each of the claims is said to have must be in use and
// must not be given back by two of them. It looks at the claims and slices of this allocator and
// shares its budgets; making it costs about as much as the claims have devices.
func (a *Allocator) Without(claims ...*resourceapi.ResourceClaim) *Allocator {
	return a.in(a.state.Without(AllocatedTo(claims, a.features)))
}

// With returns the allocator for the time when the results are in use, too. It shares what Without shares; making it costs
// about as much as there are allocated devices in the cluster.
func (a *Allocator) With(results ...resourceapi.AllocationResult) *Allocator {
	taken := AllocatedTo(nil, a.features)
	for i := range results {
		AddAllocated(&taken, results[i].Devices.Results, a.features)
	}
	return a.in(a.state.With(taken))
}

// Knowing returns the allocator with more claims that were prepared.
func (a *Allocator) Knowing(more Prepared) *Allocator {
	knowing := a.in(a.state)
	knowing.prepared = maps.Clone(a.prepared)
	if knowing.prepared == nil {
		knowing.prepared = Prepared{}
	}
	maps.Copy(knowing.prepared, more)
	knowing.classes = &seenClasses{DeviceClassLister: a.classes.DeviceClassLister}
	knowing.classes.seed(knowing.prepared)
	knowing.resolvedClaims = &resolvedClaims{}
	return knowing
}

// in returns an allocator for another state of allocation.
func (a *Allocator) in(state *availability.State) *Allocator {
	other := &Allocator{options: a.options, inputs: a.inputs, state: state}
	other.shapes = newShapes(other)
	return other
}

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
