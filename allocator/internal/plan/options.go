// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

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

// Options are the settings of an allocator.
type Options struct {
	DefinitionOptions
	Limits
	Sources
	// reasons: the answer "does not fit" is an error that says why.
	Reasons bool
	// Unbounded searches without the bounds: tests compare.
	Unbounded bool
	// Acceptance is a condition on complete sets, nil if there is none.
	Acceptance *Acceptance
}

// DefinitionOptions are about the constraints and preferences of claims and classes.
type DefinitionOptions struct {
	CELConstraints bool
	Defaults       bool
	Preferences    bool
	// Preference is the policy for requests that no preference is about, "" for none. asked has the shapes that others ask
	// for, as far as the policy is told.
	Preference v1alpha1.PreferencePolicy
	Asked      []shape.Shape
}

// Limits bound one call.
type Limits struct {
	CostBudget uint64
	StepBudget int64
	// PreferenceCost and PreferenceSteps are for all preferences of a call.
	PreferenceCost  uint64
	PreferenceSteps int64
	// Attempt is the budget of all calls of an attempt together, nil if there is none.
	Attempt *budget.Attempt
	// MaxResults is the number of devices that a claim may get.
	MaxResults int
}

// Sources have what was found out before.
type Sources struct {
	Environment *device.Environment
	Prepared    definition.Prepared
	Cache       *Cache
	// SharesCache: the cache is shared with other allocators.
	SharesCache bool
}

// DefaultOptions returns the options of an allocator that is made without options.
func DefaultOptions() Options {
	result := Options{
		DefinitionOptions: DefinitionOptions{CELConstraints: true, Defaults: true, Preferences: true},
		Limits:            Limits{MaxResults: resourceapi.AllocationResultsMaxSize},
	}
	result.SetBudget(budget.Default())
	return result
}

// SetBudget gives one call the part of the budget that is for one node.
func (l *Limits) SetBudget(of budget.Budget) {
	node, preferences := budget.OnNode(of), budget.PreferencesOnNode(of)
	l.CostBudget, l.StepBudget = node.Cost, node.Steps
	l.PreferenceCost, l.PreferenceSteps = preferences.Cost, preferences.Steps
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
