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
	// Reasons makes Allocate return an error with a reason if the claims don't fit.
	Reasons bool
	// Unbounded makes the search evaluate every set, without bounds. Tests compare the normal search with it.
	Unbounded bool
	// Acceptance is a condition on complete sets in addition to the claim's constraints, or nil.
	Acceptance *Acceptance
}

// DefinitionOptions configures which constraints and preferences of claims and classes apply.
type DefinitionOptions struct {
	CELConstraints bool
	Defaults       bool
	Preferences    bool
	// Preference is the policy for requests without a preference, or "". Asked lists the shapes that other claims ask for. The
	// policy KeepWhole reads them.
	Preference v1alpha1.PreferencePolicy
	Asked      []shape.Shape
}

// Limits holds the limits of one Allocate call.
type Limits struct {
	CostBudget uint64
	StepBudget int64
	// PreferenceCost and PreferenceSteps limit the work for all preferences of a call together.
	PreferenceCost  uint64
	PreferenceSteps int64
	// Attempt is the budget that all calls of one scheduling attempt share, or nil.
	Attempt *budget.Attempt
	// MaxResults is the maximum number of devices of a claim.
	MaxResults int
}

// Sources holds compiled expressions, prepared claims and cached results from earlier work.
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

// Acceptance is a condition on complete sets in addition to the constraints of the claim. The search checks the condition
// before it evaluates an expression, so expressions are evaluated only for accepted sets.
type Acceptance struct {
	// Totals holds linear inequalities over the set. The search cuts a branch as soon as no completion satisfies them.
	Totals []Total
	// Group returns the group of a device by its position on the node, a number of at least 0. A set has at most one device of each
	// group. If Group is nil, each device has a group of its own.
	Group func(position int) int
	// Accept reports whether a complete set that satisfies the totals is accepted. positions holds the positions of its devices on
	// the node, in the order of the search. If Accept is nil, every set is accepted.
	Accept func(positions []int) bool
}

// Total is a linear inequality: the sum of the weights of the devices must be at least Least.
type Total struct {
	// Weight returns the weight of a device by its position on the node. Weights are at least 0.
	Weight func(position int) int
	Least  int
}
