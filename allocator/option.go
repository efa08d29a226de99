// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// Option changes how an [Allocator] works.
type Option func(*plan.Options)

// WithoutCELConstraints treats a reference to a CEL device constraint as the
// attribute constraint that it looks like. No device has an attribute in that
// domain, so a claim with such a reference is never allocated.
func WithoutCELConstraints() Option {
	return func(o *plan.Options) { o.CELConstraints = false }
}

// WithoutDefaultConstraints has the definitions of a class hold only for claims that refer to
// them, as where the feature gate is off.
func WithoutDefaultConstraints() Option {
	return func(o *plan.Options) { o.Defaults = false }
}

// WithoutPreferences takes the first set that will do, whatever the claims and their classes
// prefer: nobody reads their preferences, so that mistakes in them don't matter either.
func WithoutPreferences() Option {
	return func(o *plan.Options) { o.Preferences = false }
}

// WithReasons turns the answer "does not fit" into an error that wraps
// [structured.ErrFailedAllocationOnNode] and says why in one line.
func WithReasons() Option {
	return func(o *plan.Options) { o.Reasons = true }
}

// WithBudget replaces [Default]. Each Allocate call gets the part of the budget that is for one node. An
// Allocate call that would need more returns a [*Error].
func WithBudget(budget Budget) Option {
	return func(o *plan.Options) { o.SetBudget(budget) }
}

// WithCostBudget replaces the cost that one Allocate call may have, in CEL cost units.
func WithCostBudget(limit uint64) Option {
	return func(o *plan.Options) { o.CostBudget = limit }
}

// WithStepBudget replaces the number of steps that one Allocate call with CEL constraints may take. Other calls
// have no limit.
func WithStepBudget(limit int64) Option {
	return func(o *plan.Options) { o.StepBudget = limit }
}

// WithPreferenceBudget replaces the cost and the steps that one Allocate call may use for better sets. If one of them
// is used up, the best set so far is allocated. A step with [v1alpha1.PolicyKeepWhole] counts as eight.
func WithPreferenceBudget(cost uint64, steps int64) Option {
	return func(o *plan.Options) { o.PreferenceCost, o.PreferenceSteps = cost, steps }
}

// WithDefaultPreference has a policy choose the devices of claims for which no preference is
// defined, be they with or without CEL constraints. "" is none.
func WithDefaultPreference(policy v1alpha1.PreferencePolicy) Option {
	return func(o *plan.Options) { o.Preference = policy }
}

// WithShapes tells what others may ask for, which matters to [v1alpha1.PolicyKeepWhole]. Without it
// the policy looks at sets of two, four, eight and sixteen devices.
func WithShapes(shapes []Shape) Option {
	return func(o *plan.Options) { o.Asked = shapes }
}

// WithExhaustiveSearch evaluates CEL constraints on every set, as KEP-5254
// describes, and does without all other bounds too. It is the reference that the
// search is compared with.
func WithExhaustiveSearch() Option {
	return func(o *plan.Options) { o.Unbounded = true }
}

// WithMaxResults has a claim get at most so many devices, up to [MaxSetSize], in place of as many as Kubernetes can
// write down: for sets that are not written into a claim.
func WithMaxResults(limit int) Option {
	return func(o *plan.Options) { o.MaxResults = min(limit, MaxSetSize) }
}

// WithEnvironment compiles constraints in the given environment instead of one
// that all allocators of the process share. It carries the cache of compiled
// expressions and the observer for metrics.
func WithEnvironment(environment *device.Environment) Option {
	return func(o *plan.Options) { o.Environment = environment }
}

// WithAttemptBudget lets searches with CEL constraints share a budget, beside the limits of each of them. An Allocate
// call that would exceed the shared budget returns a [*Error].
func WithAttemptBudget(budget *AttemptBudget) Option {
	return func(o *plan.Options) { o.Attempt = budget }
}

// WithPrepared has the allocator look up what the claims say. The selectors that it is made with have to be
// those of the [Preparer].
func WithPrepared(claims Prepared) Option {
	return func(o *plan.Options) { o.Prepared = claims }
}

// WithCache lets allocators share what they find out. Without it an allocator has a
// Cache of its own.
func WithCache(cache *Cache) Option {
	return func(o *plan.Options) { o.Cache, o.SharesCache = cache, true }
}

// WithAcceptance adds a condition on complete sets of a single claim. Answers are not cached then.
func WithAcceptance(acceptance Acceptance) Option {
	return func(o *plan.Options) { o.Acceptance = &acceptance }
}
