// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
)

// Option configures an [Allocator].
type Option func(*plan.Options)

// WithoutCELConstraints handles a reference to a CEL constraint as a plain matchAttribute. No device has an attribute in the
// domain celset.dev, so a claim with such a reference is never allocated.
func WithoutCELConstraints() Option {
	return func(o *plan.Options) { o.CELConstraints = false }
}

// WithoutDefaultConstraints applies the constraints of a class only to claims that refer to them. The scheduler uses this
// option while the feature gate DRACELDeviceConstraint is off.
func WithoutDefaultConstraints() Option {
	return func(o *plan.Options) { o.Defaults = false }
}

// WithoutPreferences chooses the first set and ignores all preferences of claims and classes, including mistakes in them.
func WithoutPreferences() Option {
	return func(o *plan.Options) { o.Preferences = false }
}

// WithReasons makes Allocate return an error if the claims don't fit. The error wraps [structured.ErrFailedAllocationOnNode]
// and contains the reason in one line.
func WithReasons() Option {
	return func(o *plan.Options) { o.Reasons = true }
}

// WithBudget replaces [DefaultBudget]. An Allocate call that needs more than the part for one node returns a [*BudgetError].
func WithBudget(budget Budget) Option {
	return func(o *plan.Options) { o.SetBudget(budget) }
}

// WithCostBudget sets the maximum cost of one Allocate call, in CEL cost units.
func WithCostBudget(limit uint64) Option {
	return func(o *plan.Options) { o.CostBudget = limit }
}

// WithStepBudget sets the maximum number of steps of one Allocate call with CEL constraints. Other calls have no limit.
func WithStepBudget(limit int64) Option {
	return func(o *plan.Options) { o.StepBudget = limit }
}

// WithPreferenceBudget limits the cost and the steps that one Allocate call may spend on better sets. If either is exhausted,
// the call allocates the best set so far. A step with [v1alpha1.PolicyKeepWhole] counts as eight steps.
func WithPreferenceBudget(cost uint64, steps int64) Option {
	return func(o *plan.Options) { o.PreferenceCost, o.PreferenceSteps = cost, steps }
}

// WithDefaultPreference sets the policy for requests without a preference, also in claims without CEL constraints. "" means no
// policy.
func WithDefaultPreference(policy v1alpha1.PreferencePolicy) Option {
	return func(o *plan.Options) { o.Preference = policy }
}

// WithShapes sets the shapes that [v1alpha1.PolicyKeepWhole] tries to keep available for other claims. Without this option the
// policy uses sets of two, four, eight and sixteen devices.
func WithShapes(shapes []Shape) Option {
	return func(o *plan.Options) { o.Asked = shapes }
}

// WithExhaustiveSearch evaluates CEL constraints for every set, as in KEP-5254, without bounds. Tests compare results with it.
func WithExhaustiveSearch() Option {
	return func(o *plan.Options) { o.Unbounded = true }
}

// WithMaxResults sets the maximum number of devices of a claim, at most [MaxSetSize], instead of the limit in the API. It is
// for sets that are not stored in a claim's status.
func WithMaxResults(limit int) Option {
	return func(o *plan.Options) { o.MaxResults = min(limit, MaxSetSize) }
}

// WithEnvironment compiles constraints in the given environment instead of the environment that all allocators of the process
// share. The environment contains the cache of compiled expressions and the observer for metrics.
func WithEnvironment(environment *device.Environment) Option {
	return func(o *plan.Options) { o.Environment = environment }
}

// WithAttemptBudget adds a budget that all searches with CEL constraints share, in addition to the limits of each call. An
// Allocate call that would exceed the shared budget returns a [*BudgetError].
func WithAttemptBudget(budget *AttemptBudget) Option {
	return func(o *plan.Options) { o.Attempt = budget }
}

// WithPrepared makes the allocator use prepared claims. The allocator must have the cache of selectors of the [Preparer].
func WithPrepared(claims Prepared) Option {
	return func(o *plan.Options) { o.Prepared = claims }
}

// WithCache makes allocators share a Cache of results. Without it each allocator creates a Cache.
func WithCache(cache *Cache) Option {
	return func(o *plan.Options) { o.Cache, o.SharesCache = cache, true }
}

// WithAcceptance adds a condition on complete sets. The problem must have a single claim. Its results are not cached.
func WithAcceptance(acceptance Acceptance) Option {
	return func(o *plan.Options) { o.Acceptance = &acceptance }
}
