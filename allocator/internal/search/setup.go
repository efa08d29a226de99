// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/budget"
	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/cel"
	celcompat "github.com/celset/celset/cel/compat"
)

// New checks the claims and requests in order and sets up a search. If improves is nil, the search accepts any solution.
// Otherwise it accepts only better solutions than the incumbent.
func New(ctx context.Context, on plan.OnNode, improves *Improvement) (*Search, error) {
	a := on.Planner
	s := &Search{
		OnNode:     on,
		preference: preference{Improves: improves},
		Ctx:        ctx,
		logger:     klog.FromContext(ctx),
		Work:       budget.Work{Ctx: ctx, Cost: cel.NewBudget(a.CostBudget), StepLimit: a.StepBudget, Attempt: a.Attempt},
		taken: taken{
			Available:   availability.New(a.Features, on.Node, a.State, on.Allocated, len(on.Inventory.Candidates)),
			resultCount: make([]int, len(on.Claims)),
		},
	}
	if improves != nil {
		s.Work = budget.Work{Ctx: ctx, Cost: cel.NewBudget(improves.Limits.Cost), StepLimit: improves.Limits.Steps, Attempt: budget.PreferencesOf(a.Attempt)}
	}
	s.evaluator = selection.Evaluator{Context: ctx, Features: a.Features, Node: on.Node, Compiled: a.Selectors, Work: &s.Work}
	if !a.Unbounded {
		s.evaluator.ReadSets = a
	}
	s.traces = s.logger.V(7).Enabled()
	s.symmetry.search, s.lookahead.search = s, s
	for _, claim := range on.Claims {
		if err := (setup{s}).addClaim(claim); err != nil {
			return nil, err
		}
	}
	s.lookahead.findWhatCannotFail()
	s.allocateStacks()
	return s, nil
}

// allocateStacks allocates slices that are large enough for the whole search.
func (s *Search) allocateStacks() {
	requests, devices := 0, 0
	for _, claim := range s.Requests {
		requests += len(claim)
		for _, all := range claim {
			devices += all.least().Count
		}
	}
	s.Solution.Decisions, s.Solution.Choices = make([]*Request, 0, requests), make([]Choice, 0, devices)
	s.Available.Expect(devices)
}

// setup adds the requests and constraints of the claims to a search, in order. It ends at the first error.
type setup struct{ search *Search }

func (b setup) addClaim(claim *resourceapi.ResourceClaim) error {
	all := make([]Alternatives, 0, len(claim.Spec.Devices.Requests))
	devices := 0
	for order := range claim.Spec.Devices.Requests {
		a, err := b.newAlternatives(claim, order)
		if err != nil {
			return err
		}
		if improves := b.search.Improves; improves != nil {
			met := improves.Incumbent.tried(b.search.Requests, len(b.search.Requests), order)
			a = a[met.alternative : met.alternative+1]
		}
		least := a.least()
		// Subtract instead of adding, because a sum of untrusted counts may overflow.
		if limit := b.search.Planner.MaxResults; least.Count > limit-devices && requests.AsksForMore(claim, limit) {
			return least.Errorf("adding %d devices exceeds the claim limit of %d, with %d already accounted for",
				least.Count, limit, devices)
		}
		devices += least.Count
		all = append(all, a)
	}
	b.search.Requests = append(b.search.Requests, all)
	return b.addConstraints(claim, all)
}

func (b setup) newAlternatives(claim *resourceapi.ResourceClaim, order int) (Alternatives, error) {
	a := b.search.Planner
	api := &claim.Spec.Devices.Requests[order]
	if err := requests.CheckFeatures(a.Features, claim, api); err != nil {
		return nil, err
	}
	all := make([]Request, requests.Alternatives(api))
	result := make(Alternatives, len(all))
	for i := range all {
		r := &all[i]
		r.alternative = i
		r.Request = requests.New(claim, order, i)
		if err := r.Prepare(a.Features, a.Classes); err != nil {
			return nil, err
		}
		r.group = b.groupOf(r)
		if err := b.determineCount(r); err != nil {
			return nil, err
		}
		result[i] = r
	}
	return result, nil
}

// groupOf returns the group of a request. It creates the group if no earlier request has the same eligible devices.
func (b setup) groupOf(r *Request) *group {
	s := b.search
	for _, g := range s.groups {
		if sameKind(g.first, r) {
			return g
		}
	}
	g := &group{first: r}
	g.selectors.Init(&s.evaluator, &r.Request, len(s.Inventory.Candidates), s.SelectionRow(&r.Request))
	s.groups = append(s.groups, g)
	return g
}

func (b setup) determineCount(r *Request) error {
	if r.WantsAll() {
		return b.determineAll(r)
	}
	return r.DetermineCount()
}

// determineAll finds the devices for a request with allocationMode All. It returns an error that excludes the node if any pool
// of the node is incomplete or invalid, even if the selectors would select no device of the pool.
func (b setup) determineAll(r *Request) error {
	next, candidates := 0, b.search.Inventory.Candidates
	for _, p := range b.search.Inventory.Pools {
		switch {
		case p.Incomplete:
			return r.Errorf("%w", answer.DoesNotFit(fmt.Sprintf("asks for all devices, but resource pool %s is currently being updated", p)))
		case p.Invalid != "":
			return r.Errorf("%w", answer.DoesNotFit(fmt.Sprintf("asks for all devices, but resource pool %s is currently invalid", p)))
		}
		for ; next < len(candidates) && candidates[next].Pool == p; next++ {
			isPart, err := b.isPartOfAll(r, candidates[next])
			if err != nil {
				return err
			}
			if isPart {
				r.all = append(r.all, candidates[next])
			}
		}
	}
	r.Count = len(r.all)
	return nil
}

// isPartOfAll reports whether a request with allocationMode All must get the device. The request does not get a device that
// lacks the requested capacity even when unused.
func (b setup) isPartOfAll(r *Request, c *inventory.Candidate) (bool, error) {
	features := b.search.Planner.Features
	selected, err := r.isSelected(c)
	if err != nil || !selected || !features.ConsumableCapacity {
		return selected, err
	}
	enough, err := capacity.CanServe(c.Device, r.Spec.Capacity, *celcompat.FractionalCapacityRange(&features), nil, nil)
	if err != nil {
		return false, r.Errorf("checking capacity for device %s: %w", c.Device.Name, err)
	}
	return enough, nil
}

// addConstraints adds the constraints of a claim to the requests that they cover.
func (b setup) addConstraints(claim *resourceapi.ResourceClaim, all []Alternatives) error {
	a := b.search.Planner
	definitions, err := a.Resolved(claim).Definitions()
	if err != nil {
		return err
	}
	if a.Acceptance != nil {
		b.search.accepts = b.search.newAcceptance(a.Acceptance, all)
		b.search.SymmetryOff = b.search.SymmetryOff || a.Acceptance.Accept != nil || a.Acceptance.Group != nil
		Cover(all, &resourceapi.DeviceConstraint{}, b.search.accepts)
	}
	for i := range claim.Spec.Devices.Constraints {
		api := &claim.Spec.Devices.Constraints[i]
		var c constraint.Constraint
		if d := definitions.Referred[i]; d != nil {
			c = b.search.NewCELConstraint(claim, d, api, all)
		} else if c, err = constraint.New(claim, i, a.Features.ListTypeAttributes, &b.search.evaluator); err != nil {
			return err
		}
		Cover(all, api, c)
	}
	for _, d := range definitions.Defaults {
		Cover(all, d.API, b.search.NewCELConstraint(claim, d, d.API, all))
	}
	if improves := b.search.Improves; improves != nil {
		return improves.SetUp(b.search, claim, definitions.Preferences, all)
	}
	return nil
}

// Cover adds the constraint c to all alternatives that it covers. api is the constraint in the claim.
func Cover(all []Alternatives, api *resourceapi.DeviceConstraint, c constraint.Constraint) {
	for _, alternatives := range all {
		for _, r := range alternatives {
			if constraint.Covers(api, &r.Request) {
				r.AddConstraint(c)
			}
		}
	}
}
