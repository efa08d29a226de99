// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"sync"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/shape"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// options are the settings of an [Allocator].
type options struct {
	definitionOptions
	limits
	sources
	// reasons: the answer "does not fit" is an error that says why.
	reasons bool
	// unbounded searches without the bounds: tests compare.
	unbounded bool
	// acceptance is a condition on complete sets, nil if there is none.
	acceptance *Acceptance
}

// definitionOptions are about the constraints and preferences of claims and classes.
type definitionOptions struct {
	celConstraints bool
	defaults       bool
	preferences    bool
	// preference is the policy for requests that no preference is about, "" for none. asked has the shapes that others ask
	// for, as far as the policy is told.
	preference v1alpha1.PreferencePolicy
	asked      []shape.Shape
}

// limits bound one call.
type limits struct {
	costBudget uint64
	stepBudget int64
	// preferenceCost and preferenceSteps are for all preferences of a call.
	preferenceCost  uint64
	preferenceSteps int64
	// attempt is the budget of all calls of an attempt together, nil if there is none.
	attempt *budget.Attempt
	// maxResults is the number of devices that a claim may get.
	maxResults int
}

// sources have what was found out before.
type sources struct {
	environment *device.Environment
	prepared    definition.Prepared
	cache       *Cache
	// sharesCache: the cache is shared with other allocators.
	sharesCache bool
}

func defaultOptions() options {
	result := options{
		definitionOptions: definitionOptions{celConstraints: true, defaults: true, preferences: true},
		limits:            limits{maxResults: resourceapi.AllocationResultsMaxSize},
	}
	result.setBudget(budget.Default())
	return result
}

// setBudget gives one call the part of the budget that is for one node.
func (l *limits) setBudget(of budget.Budget) {
	node, preferences := budget.OnNode(of), budget.PreferencesOnNode(of)
	l.costBudget, l.stepBudget = node.Cost, node.Steps
	l.preferenceCost, l.preferenceSteps = preferences.Cost, preferences.Steps
}

var sharedEnvironment = sync.OnceValues(func() (*device.Environment, error) {
	return device.NewEnvironment(cel.Config{})
})

// Acceptance is a condition on complete sets that the caller of the search states, in addition to the constraints of the
// claim. The search asks it before it evaluates an expression, so an expression never sees a set that is not accepted.
type Acceptance struct {
	// Totals are linear inequalities over the set. The search cuts a branch as soon as no completion satisfies them.
	Totals []Total
	// Accept reports whether a complete set that satisfies the totals is accepted. The set has the names of the devices in
	// the order in which they were taken. Accept may be nil, which accepts every set.
	Accept func(devices []string) bool
}

// Total is a linear inequality: the weights of the devices of a set have a sum of at least Least.
type Total struct {
	// Weight returns the weight of a device by its name. Weights are at least 0.
	Weight func(device string) int
	Least  int
}
