// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/selection"
	"github.com/celset/celset/cel/device/bitset"
)

// Request is a request or subrequest of a claim, prepared for the search.
type Request struct {
	requests.Request
	// alternative is the index among the alternatives of the request.
	alternative int
	// all holds the devices of the node that a request with allocationMode All must get, in ascending order.
	all []*inventory.Candidate
	// constraints holds the constraints that cover the request, in the order of the claim.
	constraints []constraint.Constraint
	// bounding holds the attribute constraints that come before the first CEL constraint. Later attribute constraints are left
	// out, because the CEL constraint is evaluated before them and might fail.
	bounding []constraint.Bounding
	// decides holds the CEL constraints whose set size depends on whether the search tries this request. A constraint may be in
	// decides without covering the request.
	decides []contribution
	// group is shared by all requests with the same eligible devices.
	group *group
}

// Alternatives holds the subrequests of a prioritized list, or one request. The search chooses the first one with a solution.
type Alternatives []*Request

// least returns the alternative that needs the fewest devices.
func (a Alternatives) least() *Request {
	result := a[0]
	for _, r := range a {
		if r.Count < result.Count {
			result = r
		}
	}
	return result
}

// group holds the state that requests with the same eligible devices share.
type group struct {
	first *Request
	// selectors holds the selectors with their verdicts on devices.
	selectors selection.Selectors
	// lookedAhead is true if the selectors have been evaluated for all devices that the requests may try.
	lookedAhead bool
}

// sameKind reports whether the same devices are eligible for both requests.
func sameKind(a, b *Request) bool {
	return a.Class.Name == b.Class.Name &&
		a.AdminAccess() == b.AdminAccess() &&
		equality.Semantic.DeepEqual(a.Spec.Selectors, b.Spec.Selectors) &&
		equality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations) &&
		equality.Semantic.DeepEqual(a.Spec.Capacity, b.Spec.Capacity)
}

// isSelected reports whether the device passes the selectors and can be used on the node.
func (r *Request) isSelected(c *inventory.Candidate) (bool, error) {
	return r.group.selectors.Select(&r.Request, c)
}

// AddConstraint adds a constraint that covers the request.
func (r *Request) AddConstraint(c constraint.Constraint) {
	if b, ok := c.(constraint.Bounding); ok && len(r.bounding) == len(r.constraints) {
		r.bounding = append(r.bounding, b)
	}
	r.constraints = append(r.constraints, c)
}

// otherConstraints returns the number of the request's constraints without [acceptance], because the pruner applies that.
func (r *Request) otherConstraints() int {
	count := len(r.constraints)
	if count > 0 {
		if _, first := r.constraints[0].(*acceptance); first {
			count--
		}
	}
	return count
}

// isAdmitted reports whether the bounding constraints allow adding the device. If a constraint refuses the device now, it also
// refuses the device after more devices were added.
func (r *Request) isAdmitted(c *inventory.Candidate) bool {
	for _, b := range r.bounding {
		if !b.Admits(c) {
			return false
		}
	}
	return true
}

// cannotFail reports whether the search evaluates only selectors while it tries the request, in every branch.
func (r *Request) cannotFail() bool {
	return len(r.Derived) == 0 && len(r.decides) == 0
}

// Passed returns the devices that have been evaluated and that the selectors select.
func (r *Request) Passed() bitset.Set { return r.group.selectors.Passed() }
