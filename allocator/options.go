// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// DefaultCostBudget is what all evaluations of one Allocate call may cost
// together, in CEL cost units. Evaluating the expressions of KEP-5254 takes about
// a microsecond for ten units, so the budget is used up after about ten seconds,
// the time that the scheduler's Filter has for a node.
const DefaultCostBudget uint64 = 100_000_000

// Option changes how an [Allocator] works.
type Option func(*options)

type options struct {
	celConstraints bool
	reasons        bool
	costBudget     uint64
	environment    *device.Environment
	cache          *Cache
	// unbounded searches without the bounds: tests compare.
	unbounded bool
}

func defaultOptions() options {
	return options{celConstraints: true, costBudget: DefaultCostBudget}
}

// WithoutCELConstraints treats a reference to a CEL device constraint as the
// attribute constraint that it looks like. No device has an attribute in that
// domain, so a claim with such a reference is never allocated.
func WithoutCELConstraints() Option {
	return func(o *options) { o.celConstraints = false }
}

// WithReasons turns the answer "does not fit" into an error that wraps
// [structured.ErrFailedAllocationOnNode] and says why in one line.
func WithReasons() Option {
	return func(o *options) { o.reasons = true }
}

// WithCostBudget replaces [DefaultCostBudget].
func WithCostBudget(limit uint64) Option {
	return func(o *options) { o.costBudget = limit }
}

// WithExhaustiveSearch evaluates CEL constraints on every set, as KEP-5254
// describes, and does without all other bounds too. It is the reference that the
// search is compared with.
func WithExhaustiveSearch() Option {
	return func(o *options) { o.unbounded = true }
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
