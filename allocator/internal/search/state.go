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

// Search is the state of one search on a node. Only one goroutine may use it.
type Search struct {
	plan.OnNode
	demands
	taken
	cutting
	preference
	Ctx    context.Context
	logger klog.Logger
	// traces is true if each step is logged.
	traces bool
	// evaluator evaluates selectors and derived attributes.
	evaluator selection.Evaluator
	Work      budget.Work
	// yield is called for each solution. It returns false if no more solutions are needed.
	yield func(*Solution) bool
	// Err is the error that ended [Search.Solutions].
	Err error
}

// demands holds the requests and constraints of the claims. New fills it.
type demands struct {
	// Requests holds the requests of each claim, in order.
	Requests       [][]Alternatives
	celConstraints []*CELConstraint
	groups         []*group
}

// taken holds the devices that the search has taken. It changes with each take and give-back.
type taken struct {
	// Available tracks the availability of the candidates.
	Available *availability.Availability
	// Solution holds the alternatives and devices chosen so far. It is empty after a search without a solution.
	Solution Solution
	// resultCount maps the index of a claim to the number of devices that the search has taken for the claim.
	resultCount []int
}

// cutting holds the parts of the search that cut branches.
type cutting struct {
	lookahead lookahead
	symmetry  symmetry
	// SymmetryOff is true if the search must not skip symmetric devices, because it matters which devices remain free.
	SymmetryOff bool
	// accepts is the caller's condition on complete sets, or nil.
	accepts *acceptance
}

// preference holds the preference that the search improves. It is empty in a search for any solution.
type preference struct {
	Improves  *Improvement
	Objective Objective
}

// point is a position in the search. claim and request are indices, and device is the index of the next device within the
// request. from is the first position to try. A request takes devices in ascending order, so that each set is tried only once.
type point struct {
	claim, request, device int
	from                   int
}

// outcome is the result of searching a branch, if no error ended the search.
type outcome int8

const (
	// none means that the branch has no solution.
	none outcome = iota
	// found means that the current choices are the solution and that the search ends.
	found
	// tooMany means that the branch has no solution because a claim would get more devices than a claim may have. The search
	// then skips other devices for earlier requests, because they can't change that. It still tries other alternatives.
	tooMany
)
