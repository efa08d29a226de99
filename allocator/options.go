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

// DefaultCostBudget is what all evaluations of one Allocate call may cost
// together, in CEL cost units. A unit stands for at most 250 ns of one core, and for a
// fraction of that in usual expressions: searches that evaluate one on every set were
// measured to spend 5 to 13 units a microsecond. So the budget is used up after ten seconds
// or twenty, where the scheduler's Filter has ten for a node, and after 25 at worst.
// BenchmarkBudgets in test/perf has the figures.
const DefaultCostBudget uint64 = 100_000_000

// DefaultStepBudget is how many steps one Allocate call with CEL constraints may
// take. Searches that read the expression (sums, counts) were measured to take about
// 100,000 steps a second on one core, one that evaluates a cheap expression on every set
// up to 190,000. So the budget is used up after five to ten seconds. Where evaluations
// make steps slower, the cost budget is used up before.
// BenchmarkBudgets in test/perf has the figures.
const DefaultStepBudget int64 = 1_000_000

// DefaultPreferenceCostBudget and DefaultPreferenceStepBudget are what one Allocate call may spend
// on looking for better sets. A small part of what finding one may take: whoever waits for a better
// set has one already. BenchmarkPreferences in test/perf has steps that take 20 to 100 microseconds on
// nodes of 64 devices.
const (
	DefaultPreferenceCostBudget uint64 = DefaultCostBudget / 100
	DefaultPreferenceStepBudget int64  = DefaultStepBudget / 500
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
	return options{
		celConstraints: true, defaults: true, preferences: true, costBudget: DefaultCostBudget, stepBudget: DefaultStepBudget,
		preferenceCost: DefaultPreferenceCostBudget, preferenceSteps: DefaultPreferenceStepBudget,
		maxResults: resourceapi.AllocationResultsMaxSize,
	}
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

// WithCostBudget replaces [DefaultCostBudget]. An Allocate call that would need more
// returns a [*BudgetError].
func WithCostBudget(limit uint64) Option {
	return func(o *options) { o.costBudget = limit }
}

// WithStepBudget replaces [DefaultStepBudget]. An Allocate call with CEL constraints
// that would need more steps returns a [*BudgetError]; others are not limited.
func WithStepBudget(limit int64) Option {
	return func(o *options) { o.stepBudget = limit }
}

// WithPreferenceBudget replaces [DefaultPreferenceCostBudget] and [DefaultPreferenceStepBudget].
// When one of them is used up, the best set that was found is allocated. A step with
// [v1alpha1.PolicyKeepWhole] counts as eight.
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

// MaxSetSize is how large a set may be at most.
const MaxSetSize = 256

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
