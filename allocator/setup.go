// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/selection"
)

// setup reads the claims of a search, in their order: requests, what they have in common, and
// constraints. The first thing that is wrong is the error.
type setup struct{ search *search }

func (b setup) addClaim(claim *resourceapi.ResourceClaim) error {
	all := make([]alternatives, 0, len(claim.Spec.Devices.Requests))
	devices := 0
	for order := range claim.Spec.Devices.Requests {
		a, err := b.newAlternatives(claim, order)
		if err != nil {
			return err
		}
		if improves := b.search.improves; improves != nil {
			met := improves.incumbent.tried(b.search.requests, len(b.search.requests), order)
			a = a[met.alternative : met.alternative+1]
		}
		least := a.least()
		// Compared before it is added: the sum of untrusted counts may overflow.
		if least.Count > resourceapi.AllocationResultsMaxSize-devices {
			return least.Errorf("adding %d devices exceeds the claim limit of %d, with %d already accounted for",
				least.Count, resourceapi.AllocationResultsMaxSize, devices)
		}
		devices += least.Count
		all = append(all, a)
	}
	b.search.requests = append(b.search.requests, all)
	return b.addConstraints(claim, all)
}

func (b setup) newAlternatives(claim *resourceapi.ResourceClaim, order int) (alternatives, error) {
	a := b.search.allocator
	api := &claim.Spec.Devices.Requests[order]
	if err := requests.CheckFeatures(a.features, claim, api); err != nil {
		return nil, err
	}
	all := make([]request, requests.Alternatives(api))
	result := make(alternatives, len(all))
	for i := range all {
		r := &all[i]
		r.alternative = i
		r.Request = requests.New(claim, order, i)
		if err := r.Prepare(a.features, a.classes); err != nil {
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

// groupOf finds the group of a request, or makes one.
func (b setup) groupOf(r *request) *group {
	s := b.search
	for _, g := range s.groups {
		if sameKind(g.first, r) {
			return g
		}
	}
	g := &group{first: r}
	g.selectors.Init(&s.evaluator, &r.Request, len(s.inventory.Candidates), b.selectionRowOf(r))
	s.groups = append(s.groups, g)
	return g
}

// selectionRowOf finds what is remembered for the selectors of a request. nil if the
// node plays a role, or a selector is none, or nobody is there to remember it for: to
// find out what view a node has takes as long as evaluating some selectors.
func (b setup) selectionRowOf(r *request) *selection.Row {
	s := b.search
	if !s.allocator.sharesCache && !s.isConstrained() || s.inventory.DevicesSelectNodes() {
		return nil
	}
	key, ok := s.selectorsKey(r)
	if !ok {
		return nil
	}
	if known, ok := tableAt[*selection.Row](s.allocator.cache, key); ok {
		return known
	}
	return tableOf(s.allocator.cache, key, func(func(int)) (*selection.Row, int) {
		row := selection.NewRow(len(s.inventory.Candidates))
		return row, row.Bytes()
	})
}

func (b setup) determineCount(r *request) error {
	if r.WantsAll() {
		return b.determineAll(r)
	}
	return r.DetermineCount()
}

// determineAll finds the devices that make up "all". It refuses to do so while
// some pool can't be seen as a whole, even if no device of it would be selected. Other
// nodes have other pools.
func (b setup) determineAll(r *request) error {
	next, candidates := 0, b.search.inventory.Candidates
	for _, p := range b.search.inventory.Pools {
		switch {
		case p.Incomplete:
			return r.Errorf("%w", doesNotFit(fmt.Sprintf("asks for all devices, but resource pool %s is currently being updated", p)))
		case p.Invalid != "":
			return r.Errorf("%w", doesNotFit(fmt.Sprintf("asks for all devices, but resource pool %s is currently invalid", p)))
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

// isPartOfAll leaves out devices that would not have the requested capacity even
// if nobody else used them.
func (b setup) isPartOfAll(r *request, c *inventory.Candidate) (bool, error) {
	features := b.search.allocator.features
	selected, err := r.isSelected(c)
	if err != nil || !selected || !features.ConsumableCapacity {
		return selected, err
	}
	enough, err := capacity.HasRoom(c.Device, r.Spec.Capacity, features.FractionalCapacityRange, nil, nil)
	if err != nil {
		return false, r.Errorf("checking capacity for device %s: %w", c.Device.Name, err)
	}
	return enough, nil
}

// addConstraints sets up the constraints of a claim for its requests.
func (b setup) addConstraints(claim *resourceapi.ResourceClaim, all []alternatives) error {
	a := b.search.allocator
	definitions, err := a.resolved(claim).definitions()
	if err != nil {
		return err
	}
	for i := range claim.Spec.Devices.Constraints {
		api := &claim.Spec.Devices.Constraints[i]
		var c constraint.Constraint
		if d := definitions.referred[i]; d != nil {
			c = b.search.newCELConstraint(claim, d, api, all)
		} else if c, err = constraint.New(claim, i, a.features.ListTypeAttributes, &b.search.evaluator); err != nil {
			return err
		}
		cover(all, api, c)
	}
	for _, d := range definitions.defaults {
		cover(all, d.api, b.search.newCELConstraint(claim, d, d.api, all))
	}
	return b.addGoals(claim, definitions.preferences, all)
}

// addGoals sets up the preferences that play a role in the search for a better set.
func (b setup) addGoals(claim *resourceapi.ResourceClaim, preferences []preference, all []alternatives) error {
	improves, index := b.search.improves, len(b.search.requests)-1
	if improves == nil {
		return nil
	}
	for _, known := range improves.kept {
		if known.claim != index || known.value == math.MinInt64 {
			// No value is below the smallest.
			continue
		}
		o, err := b.newObjective(claim, &preferences[known.preference], all)
		if err != nil {
			return err
		}
		o.target().floor = known.value - 1
	}
	if improves.next.claim != index {
		return nil
	}
	var err error
	b.search.objective, err = b.newObjective(claim, &preferences[improves.next.preference], all)
	return err
}

func (b setup) newObjective(claim *resourceapi.ResourceClaim, p *preference, all []alternatives) (objective, error) {
	if p.policy == "" {
		c := b.search.newCELConstraint(claim, p.definition, p.api, all)
		c.goal = &goal{}
		cover(all, p.api, c)
		return c, nil
	}
	w := b.search.newWholeness(p, all)
	return w, w.begin(p.shapes, b.search.improves.chosenFor(w))
}

// cover has the constraint hold for the requests that it covers.
func cover(all []alternatives, api *resourceapi.DeviceConstraint, c constraint.Constraint) {
	for _, alternatives := range all {
		for _, r := range alternatives {
			if constraint.Covers(api, &r.Request) {
				r.addConstraint(c)
			}
		}
	}
}
