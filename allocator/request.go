// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/celset/celset/allocator/internal/constraint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/selection"
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

// isSelected tells whether the device passes the selectors and is for the node.
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

// isPruned tells whether a CEL constraint knows better than counting devices whether
// the request can get the rest of its devices.
func (r *request) isPruned() bool {
	for _, d := range r.decides {
		if d.covered && d.constraint.pruner.begun && !d.constraint.pruner.volatile {
			return true
		}
	}
	return false
}

// cannotFail tells whether meeting the request can't evaluate anything but
// selectors, whatever is tried.
func (r *request) cannotFail() bool {
	return len(r.Derived) == 0 && len(r.decides) == 0 && (!r.WantsAll() || len(r.constraints) == 0)
}

// withinLimit tells whether no choice of alternatives gives the claim too many
// results.
func withinLimit(requests []alternatives) bool {
	devices := 0
	for _, all := range requests {
		most := 0
		for _, r := range all {
			most = max(most, r.Count)
		}
		if most > resourceapi.AllocationResultsMaxSize-devices {
			return false
		}
		devices += most
	}
	return true
}
