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
	// Reasons makes the answer "does not fit" an error with a reason.
	Reasons bool
	// Unbounded makes the search work without bounds. Tests compare results with it.
	Unbounded bool
	// Acceptance is an additional condition on complete sets, or nil.
	Acceptance *Acceptance
}

// DefinitionOptions configures the constraints and preferences of claims and classes.
type DefinitionOptions struct {
	CELConstraints bool
	Defaults       bool
	Preferences    bool
	// Preference is the policy for requests without a preference, or "". Asked holds the shapes that other claims ask for, as an
	// input of the policy.
	Preference v1alpha1.PreferencePolicy
	Asked      []shape.Shape
}

// Limits bound one call.
type Limits struct {
	CostBudget uint64
	StepBudget int64
	// PreferenceCost and PreferenceSteps are shared by all preferences of a call.
	PreferenceCost  uint64
	PreferenceSteps int64
	// Attempt is the budget that all calls of an attempt share, or nil.
	Attempt *budget.Attempt
	// MaxResults is the number of devices that a claim may get.
	MaxResults int
}

// Sources holds results of earlier work.
type Sources struct {
	Environment *device.Environment
	Prepared    definition.Prepared
	Cache       *Cache
	// SharesCache is true if other allocators use the cache too.
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

// SetBudget limits one call to the part of the budget for one node.
func (l *Limits) SetBudget(of budget.Budget) {
	node, preferences := budget.OnNode(of), budget.PreferencesOnNode(of)
	l.CostBudget, l.StepBudget = node.Cost, node.Steps
	l.PreferenceCost, l.PreferenceSteps = preferences.Cost, preferences.Steps
}

var sharedEnvironment = sync.OnceValues(func() (*device.Environment, error) {
	return device.NewEnvironment(cel.Config{})
})

// Acceptance is a condition on complete sets that the caller of the search adds to the constraints of the claim. The search
// checks it before it evaluates an expression, so expressions see only accepted sets.
type Acceptance struct {
	// Totals are linear inequalities over the set. The search cuts a branch as soon as no completion satisfies them.
	Totals []Total
	// Group returns the group of a device by its position on the node, a number of at least 0. A set has at most one device of each
	// group. If Group is nil, each device has a group of its own.
	Group func(position int) int
	// Accept reports whether a complete set that satisfies the totals is accepted. positions holds the positions of its devices on
	// the node, in the order in which they were taken. If Accept is nil, every set is accepted.
	Accept func(positions []int) bool
}

// Total is a linear inequality: the sum of the weights of the devices must be at least Least.
type Total struct {
	// Weight returns the weight of a device by its position on the node. Weights are at least 0.
	Weight func(position int) int
	Least  int
}
