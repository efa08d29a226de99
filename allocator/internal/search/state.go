// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/selection"
)

// Search is the state of one Allocate call. One goroutine works with it.
type Search struct {
	plan.OnNode
	demands
	taken
	cutting
	preference
	Ctx    context.Context
	logger klog.Logger
	// traces: each step is logged.
	traces bool
	// Evaluator evaluates selectors and derived attributes.
	Evaluator selection.Evaluator
	Work      budget.Work
	// yield is called for each solution. It is false if no more are wanted.
	yield func(*Solution) bool
	// Err is the error that ended [Search.Solutions].
	Err error
}

// demands are read from the claims when the search is set up.
type demands struct {
	// Requests has the requests of each claim, in order.
	Requests       [][]Alternatives
	CELConstraints []*CELConstraint
	groups         []*group
}

// taken changes with each device that the search takes or gives back.
type taken struct {
	// Available is what is left of the candidates.
	Available *availability.Availability
	// Solution has what the search took so far. When the search ends without success it is empty.
	Solution Solution
	// ResultCount counts the choices of each claim.
	ResultCount []int
}

// cutting has the means to leave out branches.
type cutting struct {
	Lookahead lookahead
	Symmetry  symmetry
	// TellsApart: devices that look the same are not symmetric, because it matters which others are left.
	TellsApart bool
	// accepts is the condition of the caller on complete sets, nil if there is none.
	accepts *acceptance
}

// preference is nil unless the search is for a better solution.
type preference struct {
	Improves  *Improvement
	Objective Objective
}

// Place is where the search stands: which device of which request of which claim
// is to be found next, and the first position at which it may be. Devices of one
// request are taken in ascending order, so that every set is tried once and not
// in all its orders.
type Place struct {
	claim, request, Device int
	From                   int
}

// outcome is how a part of the search ended, besides with an error.
type outcome int8

const (
	// none: there is no solution from here.
	none outcome = iota
	// found: the choices are the solution, and no other is wanted.
	found
	// tooMany: there is no solution from here because a claim would get more results
	// than it may have. Other devices for the requests before don't change that, so
	// they are not tried; other alternatives may.
	tooMany
)
