// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

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

// Request is one request or subrequest of a claim, ready for the search.
type Request struct {
	requests.Request
	// alternative is the place among those of the request.
	alternative int
	// all is the set of devices wanted by allocation mode All, in order.
	all []*inventory.Candidate
	// Constraints are those that cover the request, in the order of the claim.
	Constraints []constraint.Constraint
	// Bounding are those of them that are asked before any CEL constraint is: that one would
	// be evaluated, and might fail.
	Bounding []constraint.Bounding
	// Decides are the CEL constraints for which it matters that this request is
	// tried, covered or not.
	Decides []Contribution
	// Group are the requests for devices of the same kind, this one among them.
	Group *group
}

// Alternatives are what a request of a claim can be met by: the subrequests of a
// prioritized list, or the request itself alone. The first with which everything
// after it can be met is chosen.
type Alternatives []*Request

// least is the alternative that wants the fewest devices.
func (a Alternatives) least() *Request {
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
	First *Request
	// Selectors are shared by the requests.
	Selectors selection.Selectors
	// LookedAhead: they were evaluated for all devices that the requests may try.
	LookedAhead bool
}

func SameKind(a, b *Request) bool {
	return a.Class.Name == b.Class.Name &&
		a.AdminAccess() == b.AdminAccess() &&
		equality.Semantic.DeepEqual(a.Spec.Selectors, b.Spec.Selectors) &&
		equality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations) &&
		equality.Semantic.DeepEqual(a.Spec.Capacity, b.Spec.Capacity)
}

// IsSelected reports whether the device passes the selectors and is for the node.
func (r *Request) IsSelected(c *inventory.Candidate) (bool, error) {
	return r.Group.Selectors.Select(&r.Request, c)
}

// AddConstraint adds one that covers the request.
func (r *Request) AddConstraint(c constraint.Constraint) {
	if b, ok := c.(constraint.Bounding); ok && len(r.Bounding) == len(r.Constraints) {
		r.Bounding = append(r.Bounding, b)
	}
	r.Constraints = append(r.Constraints, c)
}

// otherConstraints counts the constraints but that of [WithAcceptance], which narrows the domain itself.
func (r *Request) otherConstraints() int {
	count := len(r.Constraints)
	if count > 0 {
		if _, first := r.Constraints[0].(*acceptance); first {
			count--
		}
	}
	return count
}

// isAdmitted asks the constraints that see a device of the request before a CEL constraint
// does. What they refuse now, they would refuse later, too.
func (r *Request) isAdmitted(c *inventory.Candidate) bool {
	for _, b := range r.Bounding {
		if !b.Admits(c) {
			return false
		}
	}
	return true
}

// Next is the position of the first device from the given one on that no CEL
// constraint rules out.
func (r *Request) Next(position int) int {
	for i := 0; i < len(r.Decides); i++ {
		d := r.Decides[i]
		if !d.Covered || !d.constraint.Pruner.Begun {
			continue
		}
		next := d.constraint.Pruner.next(&r.Request, position)
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
func (r *Request) isPruned() bool {
	for _, d := range r.Decides {
		if d.Covered && d.constraint.Pruner.Begun && !d.constraint.Pruner.volatile {
			return true
		}
	}
	return false
}

// cannotFail reports whether meeting the request can't evaluate anything but
// selectors, whatever is tried.
func (r *Request) cannotFail() bool {
	return len(r.Derived) == 0 && len(r.Decides) == 0
}

// setup reads the claims of a search, in their order: requests, what they have in common, and
// constraints. The first thing that is wrong is the error.
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
		// Compared before it is added: the sum of untrusted counts may overflow.
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
		r.Group = b.groupOf(r)
		if err := b.determineCount(r); err != nil {
			return nil, err
		}
		result[i] = r
	}
	return result, nil
}

// groupOf finds the group of a request, or makes one.
func (b setup) groupOf(r *Request) *group {
	s := b.search
	for _, g := range s.Groups {
		if SameKind(g.First, r) {
			return g
		}
	}
	g := &group{First: r}
	g.Selectors.Init(&s.Evaluator, &r.Request, len(s.Inventory.Candidates), s.SelectionRow(&r.Request))
	s.Groups = append(s.Groups, g)
	return g
}

func (b setup) determineCount(r *Request) error {
	if r.WantsAll() {
		return b.determineAll(r)
	}
	return r.DetermineCount()
}

// determineAll finds the devices that make up "all". It refuses to do so while
// some pool can't be seen as a whole, even if no device of it would be selected. Other
// nodes have other pools.
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

// isPartOfAll leaves out devices that would not have the requested capacity even
// if nobody else used them.
func (b setup) isPartOfAll(r *Request, c *inventory.Candidate) (bool, error) {
	features := b.search.Planner.Features
	selected, err := r.IsSelected(c)
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
func (b setup) addConstraints(claim *resourceapi.ResourceClaim, all []Alternatives) error {
	a := b.search.Planner
	definitions, err := a.Resolved(claim).Definitions()
	if err != nil {
		return err
	}
	if a.Acceptance != nil {
		b.search.accepts = b.search.newAcceptance(a.Acceptance, all)
		b.search.TellsApart = b.search.TellsApart || a.Acceptance.Accept != nil
		Cover(all, &resourceapi.DeviceConstraint{}, b.search.accepts)
	}
	for i := range claim.Spec.Devices.Constraints {
		api := &claim.Spec.Devices.Constraints[i]
		var c constraint.Constraint
		if d := definitions.Referred[i]; d != nil {
			c = b.search.NewCELConstraint(claim, d, api, all)
		} else if c, err = constraint.New(claim, i, a.Features.ListTypeAttributes, &b.search.Evaluator); err != nil {
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

// Cover has the constraint hold for the requests that it covers.
func Cover(all []Alternatives, api *resourceapi.DeviceConstraint, c constraint.Constraint) {
	for _, alternatives := range all {
		for _, r := range alternatives {
			if constraint.Covers(api, &r.Request) {
				r.AddConstraint(c)
			}
		}
	}
}

// Passed returns the devices that are known to pass the selectors.
func (r *Request) Passed() bitset.Set { return r.Group.Selectors.Passed() }

// Narrow removes devices from the domain that the CEL constraints of the request rule out. It returns the devices that the
// constraint is sure to need whose last covered request is the given one, nil if there are none.
func (r *Request) Narrow(domain bitset.Set, last int) (forced bitset.Set) {
	for _, d := range r.Decides {
		if p := d.constraint.Pruner; d.Covered && p.Begun {
			level := len(d.constraint.Members)
			domain.Keep(p.Domain.At(level))
			if d.constraint.last == last {
				forced = p.Forced.At(level)
			}
		}
	}
	return forced
}
