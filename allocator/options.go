// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// Option changes how an [Allocator] works.
type Option func(*options)

type options struct {
	celConstraints bool
	defaults       bool
	preferences    bool
	reasons        bool
	costBudget     uint64
	stepBudget     int64
	// preferenceCost and preferenceSteps are for all preferences of a call.
	preferenceCost  uint64
	preferenceSteps int64
	attempt         *AttemptBudget
	// preference is the policy for requests that no preference is about, "" for none. asked is
	// what it knows of what others may ask for.
	preference  v1alpha1.PreferencePolicy
	asked       []Shape
	environment *device.Environment
	prepared    Prepared
	cache       *Cache
	sharesCache bool
	// unbounded searches without the bounds: tests compare.
	unbounded bool
	// maxResults is how many devices a claim may get.
	maxResults int
	// acceptance is a condition on complete sets, nil if there is none.
	acceptance *Acceptance
}

func defaultOptions() options {
	result := options{celConstraints: true, defaults: true, preferences: true, maxResults: resourceapi.AllocationResultsMaxSize}
	WithBudget(DefaultBudget())(&result)
	return result
}

// WithoutCELConstraints treats a reference to a CEL device constraint as the
// attribute constraint that it looks like. No device has an attribute in that
// domain, so a claim with such a reference is never allocated.
func WithoutCELConstraints() Option {
	return func(o *options) { o.celConstraints = false }
}

// WithoutDefaultConstraints has the definitions of a class hold only for claims that refer to
// them, as where the feature gate is off.
func WithoutDefaultConstraints() Option {
	return func(o *options) { o.defaults = false }
}

// WithoutPreferences takes the first set that will do, whatever the claims and their classes
// prefer: nobody reads their preferences, so that mistakes in them don't matter either.
func WithoutPreferences() Option {
	return func(o *options) { o.preferences = false }
}

// WithReasons turns the answer "does not fit" into an error that wraps
// [structured.ErrFailedAllocationOnNode] and says why in one line.
func WithReasons() Option {
	return func(o *options) { o.reasons = true }
}

// WithBudget replaces [DefaultBudget]. Each Allocate call gets the part of the budget that is for one node. An
// Allocate call that would need more returns a [*BudgetError].
func WithBudget(budget Budget) Option {
	return func(o *options) {
		node, preferences := budget.node(), budget.nodePreferences()
		o.costBudget, o.stepBudget = node.Cost, node.Steps
		o.preferenceCost, o.preferenceSteps = preferences.Cost, preferences.Steps
	}
}

// WithCostBudget replaces the cost that one Allocate call may have, in CEL cost units.
func WithCostBudget(limit uint64) Option {
	return func(o *options) { o.costBudget = limit }
}

// WithStepBudget replaces the number of steps that one Allocate call with CEL constraints may take. Other calls
// have no limit.
func WithStepBudget(limit int64) Option {
	return func(o *options) { o.stepBudget = limit }
}

// WithPreferenceBudget replaces the cost and the steps that one Allocate call may use for better sets. If one of them
// is used up, the best set so far is allocated. A step with [v1alpha1.PolicyKeepWhole] counts as eight.
func WithPreferenceBudget(cost uint64, steps int64) Option {
	return func(o *options) { o.preferenceCost, o.preferenceSteps = cost, steps }
}

// WithDefaultPreference has a policy choose the devices of claims for which no preference is
// defined, be they with or without CEL constraints. "" is none.
func WithDefaultPreference(policy v1alpha1.PreferencePolicy) Option {
	return func(o *options) { o.preference = policy }
}

// WithShapes tells what others may ask for, which matters to [v1alpha1.PolicyKeepWhole]. Without it
// the policy looks at sets of two, four, eight and sixteen devices.
func WithShapes(shapes []Shape) Option {
	return func(o *options) { o.asked = shapes }
}

// WithExhaustiveSearch evaluates CEL constraints on every set, as KEP-5254
// describes, and does without all other bounds too. It is the reference that the
// search is compared with.
func WithExhaustiveSearch() Option {
	return func(o *options) { o.unbounded = true }
}

// WithMaxResults has a claim get at most so many devices, up to [MaxSetSize], in place of as many as Kubernetes can
// write down: for sets that are not written into a claim.
func WithMaxResults(limit int) Option {
	return func(o *options) { o.maxResults = min(limit, MaxSetSize) }
}

// WithEnvironment compiles constraints in the given environment instead of one
// that all allocators of the process share. It carries the cache of compiled
// expressions and the observer for metrics.
func WithEnvironment(environment *device.Environment) Option {
	return func(o *options) { o.environment = environment }
}

var sharedEnvironment = sync.OnceValues(func() (*device.Environment, error) {
	return device.NewEnvironment(cel.Config{})
})

// WithAttemptBudget lets searches with CEL constraints share a budget, beside the limits of each of them. An Allocate
// call that would exceed the shared budget returns a [*BudgetError].
func WithAttemptBudget(budget *AttemptBudget) Option {
	return func(o *options) { o.attempt = budget }
}

// WithPrepared has the allocator look up what the claims say. The selectors that it is made with have to be
// those of the [Preparer].
func WithPrepared(claims Prepared) Option {
	return func(o *options) { o.prepared = claims }
}
