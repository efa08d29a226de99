// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"slices"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Search chooses nodes for the pods of a group and assigns the pods to them.
//
//  1. It chooses nodes for all waiting pods. If that fails, it chooses nodes for any Least of them.
//  2. If a node may take several pods, a set may have fewer nodes than pods. Sizes are tried in ascending order. Without a
//     preference the first set is chosen, otherwise the best set of all sizes, and the smallest of equally good sets.
//  3. For each size, package allocator enumerates the sets of nodes in order of their names. The search is
//     pruned by the expression and by the number of pods that the nodes take together (slots.go, condition.go).
//  4. A complete set is accepted if the pods can be assigned such that each node gets at least one and takes its pods together
//     (assign.go). Only then the expression is evaluated.
//
// So the expression holds for exactly the nodes where the pods run. A Search is for one goroutine.
type Search struct {
	*Chooser
	*Group
	// Nodes are sorted by name.
	Nodes []Node
	// Hosts says what a node can take. It may be nil if each node takes one pod and pods on different nodes don't compete.
	Hosts Hosts
	// Compiled returns the prepared claim of a problem.
	Compiled Compiler
	Options  []allocator.Option
	// OnlyLeast skips step 1 and chooses nodes for Least pods only.
	OnlyLeast bool

	slots slots
	tried tried
	// steps counts the steps of all assignments. err is the error that ended an assignment.
	steps int
	err   error
}

// tried describes the last sets searched.
type tried struct {
	// sizes holds the smallest and the largest size of these sets.
	sizes [2]int
	// isPartial is set if more sets exist that were not searched, because there are too many divisions of the pods.
	isPartial bool
	// count is the number of pods that the sets were for. most is an upper bound of the pods that all nodes take together.
	count, most int
}

// Compiler returns the prepared claim of a problem.
type Compiler func(ctx context.Context, problem *Problem) (*allocator.PreparedClaim, error)

// Choice is a set of nodes with the pods for each of them.
type Choice struct {
	// Members is sorted by name.
	Members []Member
	// Pods is the number of pods that the nodes are for.
	Pods int
	// Kinds holds the number of these pods by kind.
	Kinds []int
	allocator.Details
}

// Member is a node of a set.
type Member struct {
	// Node is the index of the node.
	Node int
	// Load holds the number of pods of each kind for the node. It may be empty for a node where pods of the group already run.
	Load Load
	// Set is the index in Node.Sets of the devices of the pod, if expressions read devices.
	Set int
}

// These limits of cost and steps hold for the nodes of one group, and separately for the search for better nodes.
const (
	searchCost  uint64 = 10_000_000
	searchSteps int64  = 100_000
)

// Limits returns the options that limit the search for one group, and their budget. The scheduler and kubectl use the same.
func Limits() ([]allocator.Option, *allocator.AttemptBudget) {
	limits := allocator.Budget{Cost: searchCost, Steps: searchSteps}
	budget := allocator.NewSeparateBudgets(limits, limits)
	return []allocator.Option{allocator.WithCostBudget(searchCost), allocator.WithStepBudget(searchSteps), allocator.WithAttemptBudget(budget)}, budget
}

// Choose returns nodes for the pods, or nil if no set is found. The error names the group or the object with the constraint.
func (s *Search) Choose(ctx context.Context) (*Choice, error) {
	if err := s.measure(ctx); err != nil {
		return nil, err
	}
	s.steps = 0
	all := s.pods()
	if s.Least == 0 || s.Least >= all {
		return s.chooseFor(ctx, all)
	}
	// Pods beyond the largest possible set are placed later.
	if most := v1alpha1.MaxNodeSetSize * s.podsPerNode(); s.OnlyLeast || all > most && s.Least <= most {
		return s.chooseFor(ctx, s.Least)
	}
	choice, err := s.chooseFor(ctx, all)
	if choice != nil || err != nil {
		return choice, err
	}
	forAll := s.tried
	if choice, err = s.chooseFor(ctx, s.Least); choice == nil {
		// Reason explains the search for all pods.
		s.tried = forAll
	}
	return choice, err
}

// Holds reports whether the nodes where pods of the group run satisfy the expression on their own.
func (s *Search) Holds(ctx context.Context) (bool, error) {
	if s.ReadsPods && !s.ReadsDevices {
		set, err := s.ofDivision(ctx, unitLoads(make([]int, len(s.Kinds)), s.placed()))
		return set != nil, err
	}
	set, err := s.ofSize(ctx, 0, 0)
	return set != nil, err
}

// chooseFor chooses nodes for count pods.
func (s *Search) chooseFor(ctx context.Context, count int) (*Choice, error) {
	s.tried.count, s.tried.isPartial = count, false
	switch {
	case s.ReadsDevices:
		return s.chooseByKinds(ctx, count)
	case s.ReadsPods:
		return s.chooseByPods(ctx, count)
	}
	placed := s.placed()
	least, most, ok := s.slots.sizes(s, count)
	most = min(most, v1alpha1.MaxNodeSetSize-placed)
	s.tried.sizes = [2]int{placed + least, placed + max(least, most)}
	if !ok {
		return nil, nil
	}
	if least > most {
		// ofSize returns the error.
		_, err := s.ofSize(ctx, count, least)
		return nil, err
	}
	var best *Choice
	for size := least; size <= most; size++ {
		choice, err := s.ofSize(ctx, count, size)
		if _, over := errors.AsType[*allocator.BudgetError](err); over && best != nil {
			best.Outcome = allocator.PreferenceBestFound
			break
		}
		switch {
		case err != nil:
			return nil, err
		case choice == nil:
		case s.Constraint.Preference == "":
			return choice, nil
		case best == nil || value(choice) > value(best):
			best = choice
		}
	}
	return best, nil
}

func value(c *Choice) int64 {
	if len(c.Preferences) == 0 {
		return 0
	}
	return c.Preferences[0].Value
}

// placed returns the number of nodes where pods of the group run.
func (s *Search) placed() (count int) {
	for i := range s.Nodes {
		if s.Nodes[i].Placed {
			count++
		}
	}
	return count
}

// ofSize chooses a set: all nodes where pods of the group run, and size other nodes.
func (s *Search) ofSize(ctx context.Context, count, size int) (*Choice, error) {
	wanted := []int{size}
	if size == 0 {
		wanted = nil
	}
	problem, err := NewProblem(s.Group, s.placed(), wanted...)
	if err != nil {
		return nil, err
	}
	set, err := s.run(ctx, problem, s.condition(ctx, count, size))
	if set == nil || err != nil {
		return nil, err
	}
	members, err := s.assign(ctx, nodesOf(set.members), count)
	if err != nil {
		return nil, err
	}
	return s.choice(members, set.Details), nil
}

func (s *Search) run(ctx context.Context, problem *Problem, only *condition) (*chosen, error) {
	prepared, err := s.Compiled(ctx, problem)
	if err != nil {
		return nil, err
	}
	s.err = nil
	set, err := s.choose(ctx, problem, prepared, s.Nodes, only, s.Options...)
	if s.err != nil {
		return nil, s.failed(s.err, s.err.Error())
	}
	return set, err
}

func (s *Search) choice(members []Member, details allocator.Details) *Choice {
	c := &Choice{Members: members, Kinds: make([]int, len(s.Kinds)), Details: details}
	slices.SortFunc(c.Members, func(a, b Member) int { return a.Node - b.Node })
	for _, m := range members {
		for kind, n := range m.Load {
			c.Kinds[kind] += n
			c.Pods += n
		}
	}
	return c
}

// maxKindCounts limits the tried combinations of kinds for a part of the pods, if expressions read devices.
const maxKindCounts = 64

// chooseByKinds chooses nodes if expressions read devices. Pods of each kind get different devices, so each kind has a request.
func (s *Search) chooseByKinds(ctx context.Context, count int) (*Choice, error) {
	s.tried.sizes = [2]int{s.placed() + count, s.placed() + count}
	for _, kinds := range kindCounts(s.Kinds, count, maxKindCounts) {
		problem, err := NewProblem(s.Group, s.placed(), kinds...)
		if err != nil {
			return nil, err
		}
		set, err := s.run(ctx, problem, nil)
		if err != nil {
			return nil, err
		}
		if set != nil {
			return s.choice(membersOf(set.members, len(s.Kinds)), set.Details), nil
		}
	}
	return nil, nil
}

// kindCounts returns at most limit ways to divide count pods among the kinds. Ways with more pods of earlier kinds come first.
func kindCounts(of []int, count, limit int) (all [][]int) {
	// after holds the number of pods of each kind and all later kinds.
	after := make([]int, len(of)+1)
	for kind := len(of) - 1; kind >= 0; kind-- {
		after[kind] = after[kind+1] + of[kind]
	}
	var choose func(kind, left int, taken []int)
	choose = func(kind, left int, taken []int) {
		if len(all) == limit || left > after[kind] {
			return
		}
		if kind == len(of) {
			if left == 0 {
				all = append(all, slices.Clone(taken))
			}
			return
		}
		for n := min(of[kind], left); n >= 0; n-- {
			choose(kind+1, left-n, append(taken, n))
		}
	}
	choose(0, count, nil)
	return all
}
