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

// Search is the state of one Allocate call. It is used by one goroutine.
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

// demands holds the requests and constraints of the claims. It is filled when the search is set up.
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
	// Solution holds the decisions and devices so far. It is empty after a search that found nothing.
	Solution Solution
	// resultCount holds the number of choices of each claim.
	resultCount []int
}

// cutting holds the mechanisms that cut branches.
type cutting struct {
	lookahead lookahead
	symmetry  symmetry
	// SymmetryOff is true if symmetry must not be used, because it matters which devices remain free.
	SymmetryOff bool
	// accepts is the condition of the caller on complete sets, or nil.
	accepts *acceptance
}

// preference is empty unless the search is for a better solution.
type preference struct {
	Improves  *Improvement
	Objective Objective
}

// point is the current point of the search: the claim, the request, the index of the device to find next, and the first position
// to try. Devices of one request are taken in ascending order, so that each set is tried in one order only.
type point struct {
	claim, request, device int
	from                   int
}

// outcome is the result of a part of the search, unless it ended with an error.
type outcome int8

const (
	// none means that this branch has no solution.
	none outcome = iota
	// found means that the choices are the solution and the search ends.
	found
	// tooMany means that this branch has no solution because a claim would get more results than it may have. Other devices for
	// earlier requests can't change that, so they are not tried. Other alternatives can.
	tooMany
)
