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
	// all holds the devices that allocation mode All asks for, in order.
	all []*inventory.Candidate
	// Constraints holds the constraints that cover the request, in the order of the claim.
	Constraints []constraint.Constraint
	// Bounding holds the constraints before the first CEL constraint. Later ones are left out, because evaluating the CEL
	// constraint might fail.
	Bounding []constraint.Bounding
	// Decides holds the CEL constraints whose set size depends on whether this request is tried, even if they don't cover it.
	Decides []Contribution
	// Group is shared by all requests for the same kind of device.
	Group *group
}

// Alternatives are the subrequests of a prioritized list, or a single request. The search chooses the first alternative that
// leads to a solution.
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

// group holds the common state of requests with the same eligible devices.
type group struct {
	first *Request
	// Selectors holds the verdicts of the selectors, which all requests of the group share.
	Selectors selection.Selectors
	// LookedAhead is true after the selectors were evaluated for all devices that the requests may try.
	LookedAhead bool
}

// SameKind reports whether the same devices are eligible for two requests.
func SameKind(a, b *Request) bool {
	return a.Class.Name == b.Class.Name &&
		a.AdminAccess() == b.AdminAccess() &&
		equality.Semantic.DeepEqual(a.Spec.Selectors, b.Spec.Selectors) &&
		equality.Semantic.DeepEqual(a.Spec.Tolerations, b.Spec.Tolerations) &&
		equality.Semantic.DeepEqual(a.Spec.Capacity, b.Spec.Capacity)
}

// IsSelected reports whether the device passes the selectors and can be used on the node.
func (r *Request) IsSelected(c *inventory.Candidate) (bool, error) {
	return r.Group.Selectors.Select(&r.Request, c)
}

// AddConstraint adds a constraint that covers the request.
func (r *Request) AddConstraint(c constraint.Constraint) {
	if b, ok := c.(constraint.Bounding); ok && len(r.Bounding) == len(r.Constraints) {
		r.Bounding = append(r.Bounding, b)
	}
	r.Constraints = append(r.Constraints, c)
}

// otherConstraints counts the constraints of the request except an [acceptance], because the pruner applies that itself.
func (r *Request) otherConstraints() int {
	count := len(r.Constraints)
	if count > 0 {
		if _, first := r.Constraints[0].(*acceptance); first {
			count--
		}
	}
	return count
}

// isAdmitted reports whether the Bounding constraints admit the device. If they refuse a device now, they also refuse it later.
func (r *Request) isAdmitted(c *inventory.Candidate) bool {
	for _, b := range r.Bounding {
		if !b.Admits(c) {
			return false
		}
	}
	return true
}

// cannotFail reports whether meeting the request evaluates nothing but selectors, in every branch.
func (r *Request) cannotFail() bool {
	return len(r.Derived) == 0 && len(r.Decides) == 0
}

// Passed returns the devices whose verdict of the selectors has been found to be true.
func (r *Request) Passed() bitset.Set { return r.Group.Selectors.Passed() }
