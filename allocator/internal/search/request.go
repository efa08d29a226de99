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
	first *Request
	// Selectors are shared by the requests.
	Selectors selection.Selectors
	// LookedAhead: they were evaluated for all devices that the requests may try.
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

// otherConstraints counts the constraints without that of the caller, which narrows the domain itself.
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

// cannotFail reports whether meeting the request can't evaluate anything but
// selectors, whatever is tried.
func (r *Request) cannotFail() bool {
	return len(r.Derived) == 0 && len(r.Decides) == 0
}

// Passed returns the devices that are known to pass the selectors.
func (r *Request) Passed() bitset.Set { return r.Group.Selectors.Passed() }
