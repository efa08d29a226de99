// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/selection"
	celcompat "github.com/celset/celset/cel/compat"
	"github.com/celset/celset/cel/device/bitset"
)

// request is one request or subrequest of a claim, ready for the search.
type request struct {
	requests.Request
	// alternative is the place among those of the request.
	alternative int
	// all is the set of devices wanted by allocation mode All, in order.
	all []*inventory.Candidate
	// constraints are those that cover the request, in the order of the claim.
	constraints []constraint.Constraint
	// bounding are those of them that are asked before any CEL constraint is: that one would
	// be evaluated, and might fail.
	bounding []constraint.Bounding
	// decides are the CEL constraints for which it matters that this request is
	// tried, covered or not.
	decides []contribution
	// group are the requests for devices of the same kind, this one among them.
	group *group
}

// alternatives are what a request of a claim can be met by: the subrequests of a
// prioritized list, or the request itself alone. The first with which everything
// after it can be met is chosen.
type alternatives []*request

// least is the alternative that wants the fewest devices.
func (a alternatives) least() *request {
	result := a[0]
	for _, r := range a {
		if r.Count < result.Count {
			result = r
		}
	}
	return result
}

// group is what requests have in common that want the same kind of device: the
// same devices are eligible for them.
type group struct {
	first *request
	// selectors are shared by the requests.
	selectors selection.Selectors
	// lookedAhead: they were evaluated for all devices that the requests may try.
	lookedAhead bool
}

func sameKind(a, b *request) bool {
	return a.Class.Name == b.Class.Name &&
		a.AdminAccess() == b.AdminAccess() &&
		equality.Semantic.DeepEqual(a.Spec.Selectors, b.Spec.Selectors) &&
		equality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations) &&
		equality.Semantic.DeepEqual(a.Spec.Capacity, b.Spec.Capacity)
}

// isSelected reports whether the device passes the selectors and is for the node.
func (r *request) isSelected(c *inventory.Candidate) (bool, error) {
	return r.group.selectors.Select(&r.Request, c)
}

// addConstraint adds one that covers the request.
func (r *request) addConstraint(c constraint.Constraint) {
	if b, ok := c.(constraint.Bounding); ok && len(r.bounding) == len(r.constraints) {
		r.bounding = append(r.bounding, b)
	}
	r.constraints = append(r.constraints, c)
}

// otherConstraints counts the constraints but that of [WithAcceptance], which narrows the domain itself.
func (r *request) otherConstraints() int {
	count := len(r.constraints)
	if count > 0 {
		if _, first := r.constraints[0].(*acceptance); first {
			count--
		}
	}
	return count
}

// isAdmitted asks the constraints that see a device of the request before a CEL constraint
// does. What they refuse now, they would refuse later, too.
func (r *request) isAdmitted(c *inventory.Candidate) bool {
	for _, b := range r.bounding {
		if !b.Admits(c) {
			return false
		}
	}
	return true
}

// next is the position of the first device from the given one on that no CEL
// constraint rules out.
func (r *request) next(position int) int {
	for i := 0; i < len(r.decides); i++ {
		d := r.decides[i]
		if !d.covered || !d.constraint.pruner.begun {
			continue
		}
		next := d.constraint.pruner.next(&r.Request, position)
		if next > position && i > 0 {
			// What the others said was about another device.
			i = -1
		}
		position = next
	}
	return position
}

// isPruned reports whether a CEL constraint knows better than counting devices whether
// the request can get the rest of its devices.
func (r *request) isPruned() bool {
	for _, d := range r.decides {
		if d.covered && d.constraint.pruner.begun && !d.constraint.pruner.volatile {
			return true
		}
	}
	return false
}

// cannotFail reports whether meeting the request can't evaluate anything but
// selectors, whatever is tried.
func (r *request) cannotFail() bool {
	return len(r.Derived) == 0 && len(r.decides) == 0
}

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
		if limit := b.search.Planner.MaxResults; least.Count > limit-devices && requests.AsksForMore(claim, limit) {
			return least.Errorf("adding %d devices exceeds the claim limit of %d, with %d already accounted for",
				least.Count, limit, devices)
		}
		devices += least.Count
		all = append(all, a)
	}
	b.search.requests = append(b.search.requests, all)
	return b.addConstraints(claim, all)
}

func (b setup) newAlternatives(claim *resourceapi.ResourceClaim, order int) (alternatives, error) {
	a := b.search.Planner
	api := &claim.Spec.Devices.Requests[order]
	if err := requests.CheckFeatures(a.Features, claim, api); err != nil {
		return nil, err
	}
	all := make([]request, requests.Alternatives(api))
	result := make(alternatives, len(all))
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

// groupOf finds the group of a request, or makes one.
func (b setup) groupOf(r *request) *group {
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

// isPartOfAll leaves out devices that would not have the requested capacity even
// if nobody else used them.
func (b setup) isPartOfAll(r *request, c *inventory.Candidate) (bool, error) {
	features := b.search.Planner.Features
	selected, err := r.isSelected(c)
	if err != nil || !selected || !features.ConsumableCapacity {
		return selected, err
	}
	enough, err := capacity.HasRoom(c.Device, r.Spec.Capacity, *celcompat.FractionalCapacityRange(&features), nil, nil)
	if err != nil {
		return false, r.Errorf("checking capacity for device %s: %w", c.Device.Name, err)
	}
	return enough, nil
}

// addConstraints sets up the constraints of a claim for its requests.
func (b setup) addConstraints(claim *resourceapi.ResourceClaim, all []alternatives) error {
	a := b.search.Planner
	definitions, err := a.Resolved(claim).Definitions()
	if err != nil {
		return err
	}
	if a.Acceptance != nil {
		b.search.accepts = b.search.newAcceptance(a.Acceptance, all)
		b.search.tellsApart = b.search.tellsApart || a.Acceptance.Accept != nil
		cover(all, &resourceapi.DeviceConstraint{}, b.search.accepts)
	}
	for i := range claim.Spec.Devices.Constraints {
		api := &claim.Spec.Devices.Constraints[i]
		var c constraint.Constraint
		if d := definitions.Referred[i]; d != nil {
			c = b.search.newCELConstraint(claim, d, api, all)
		} else if c, err = constraint.New(claim, i, a.Features.ListTypeAttributes, &b.search.evaluator); err != nil {
			return err
		}
		cover(all, api, c)
	}
	for _, d := range definitions.Defaults {
		cover(all, d.API, b.search.newCELConstraint(claim, d, d.API, all))
	}
	if improves := b.search.improves; improves != nil {
		return improves.setUp(b.search, claim, definitions.Preferences, all)
	}
	return nil
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

// passed returns the devices that are known to pass the selectors.
func (r *request) passed() bitset.Set { return r.group.selectors.Passed() }

// narrow removes devices from the domain that the CEL constraints of the request rule out. It returns the devices that the
// constraint is sure to need whose last covered request is the given one, nil if there are none.
func (r *request) narrow(domain bitset.Set, last int) (forced bitset.Set) {
	for _, d := range r.decides {
		if p := d.constraint.pruner; d.covered && p.begun {
			level := len(d.constraint.members)
			domain.Keep(p.domain.At(level))
			if d.constraint.last == last {
				forced = p.forced.At(level)
			}
		}
	}
	return forced
}
