// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/capacity"
	"github.com/celset/celset/allocator/internal/inventory"
)

// alternatives are what a request of a claim can be met by: the subrequests of a
// prioritized list, or the request itself alone. The first with which everything
// after it can be met is chosen.
type alternatives []*request

// request is one request or subrequest of a claim, checked and ready for the
// search.
type request struct {
	claim *resourceapi.ResourceClaim
	// name is "request" or "request/subrequest".
	name string
	// parent is the name of the request that a subrequest belongs to, else empty.
	parent string
	// order is the place of the request in the claim.
	order int
	spec  *resourceapi.ExactDeviceRequest
	class *resourceapi.DeviceClass
	// count is the number of devices wanted, not negative.
	count int
	// all is the set of devices wanted by allocation mode All, in order.
	all []*inventory.Candidate
	// derived are the expressions of derived attributes by the attribute's name.
	derived map[resourceapi.FullyQualifiedName]string
	// constraints are those that cover the request, in the order of the claim.
	constraints []constraint
	// decides are the CEL constraints for which it matters that this request is
	// tried, covered or not.
	decides []contribution
	// group are the requests for devices of the same kind, this one among them.
	group *group
}

func (r *request) wantsAll() bool {
	return r.spec.AllocationMode == resourceapi.DeviceAllocationModeAll
}

func (r *request) adminAccess() bool {
	return ptr.Deref(r.spec.AdminAccess, false)
}

func (r *request) wantsCapacity() bool {
	return r.spec.Capacity != nil && len(r.spec.Capacity.Requests) > 0
}

// isSimple tells whether nothing but selectors and what is in use decides whether the
// request can have the device.
func (r *request) isSimple(c *inventory.Candidate) bool { return c.Ordinary && !r.wantsCapacity() }

// isNamed tells whether a list of request names, of a constraint or a
// configuration, has the request in it.
func (r *request) isNamed(names []string) bool {
	return slices.Contains(names, r.name) || r.parent != "" && slices.Contains(names, r.parent)
}

// next is the position of the first device from the given one on that no CEL
// constraint rules out.
func (r *request) next(position int) int {
	for i := 0; i < len(r.decides); i++ {
		d := r.decides[i]
		if !d.covered || !d.constraint.pruner.begun {
			continue
		}
		next := d.constraint.pruner.next(r, position)
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

// errorf makes an error about the request.
func (r *request) errorf(format string, args ...any) error {
	return fmt.Errorf("claim %s, request %s: %w", klog.KObj(r.claim), r.name, fmt.Errorf(format, args...))
}

// newAlternatives checks that a request is understood and its classes exist.
func (s *search) newAlternatives(claim *resourceapi.ResourceClaim, api *resourceapi.DeviceRequest) (alternatives, error) {
	if err := s.checkFeatures(claim, api); err != nil {
		return nil, err
	}
	var result alternatives
	if len(api.FirstAvailable) == 0 {
		result = alternatives{{claim: claim, name: api.Name, spec: api.Exactly}}
	}
	for i := range api.FirstAvailable {
		result = append(result, subrequest(claim, api.Name, &api.FirstAvailable[i]))
	}
	for _, r := range result {
		if err := s.prepare(r); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// subrequest has all of a request but admin access.
func subrequest(claim *resourceapi.ResourceClaim, parent string, api *resourceapi.DeviceSubRequest) *request {
	return &request{
		claim:  claim,
		name:   parent + "/" + api.Name,
		parent: parent,
		spec: &resourceapi.ExactDeviceRequest{
			DeviceClassName:   api.DeviceClassName,
			Selectors:         api.Selectors,
			AllocationMode:    api.AllocationMode,
			Count:             api.Count,
			Tolerations:       api.Tolerations,
			Capacity:          api.Capacity,
			DerivedAttributes: api.DerivedAttributes,
		},
	}
}

// checkFeatures refuses what can't be ignored when the feature for it is off.
func (s *search) checkFeatures(claim *resourceapi.ResourceClaim, api *resourceapi.DeviceRequest) error {
	r := &request{claim: claim, name: api.Name}
	const disabled = "has %s, but the %s feature is disabled"
	if api.Exactly == nil && len(api.FirstAvailable) == 0 {
		return r.errorf("neither exactly nor firstAvailable is set (unsupported request type?)")
	}
	if len(api.FirstAvailable) > 0 && !s.allocator.features.PrioritizedList {
		return r.errorf(disabled, "subrequests", "DRAPrioritizedList")
	}
	if !s.allocator.features.ConsumableCapacity {
		if api.Exactly != nil && api.Exactly.Capacity != nil ||
			slices.ContainsFunc(api.FirstAvailable, func(sub resourceapi.DeviceSubRequest) bool { return sub.Capacity != nil }) {
			return r.errorf(disabled, "capacity requests", "DRAConsumableCapacity")
		}
	}
	return nil
}

func (s *search) prepare(r *request) error {
	if len(r.spec.DerivedAttributes) > 0 {
		if !s.allocator.features.DerivedAttributes {
			return r.errorf("cannot handle request with derived attributes, the feature is disabled")
		}
		r.derived = make(map[resourceapi.FullyQualifiedName]string, len(r.spec.DerivedAttributes))
		for _, attribute := range r.spec.DerivedAttributes {
			r.derived[attribute.Name] = attribute.Expression
		}
	}
	for i, selector := range r.spec.Selectors {
		if selector.CEL == nil {
			return r.errorf("selector #%d: CEL expression empty (unsupported selector type?)", i)
		}
	}
	if r.spec.AdminAccess != nil && !s.allocator.features.AdminAccess {
		return r.errorf("admin access is requested, but the feature is disabled")
	}
	if r.spec.DeviceClassName == "" {
		return r.errorf("missing device class name (unsupported request type?)")
	}
	class, err := s.allocator.classes.Get(r.spec.DeviceClassName)
	if err != nil {
		return r.errorf("could not retrieve device class %s: %w", r.spec.DeviceClassName, err)
	}
	r.class = class
	r.group = s.groupOf(r)
	return s.determineCount(r)
}

func (s *search) determineCount(r *request) error {
	switch r.spec.AllocationMode {
	case resourceapi.DeviceAllocationModeExactCount:
		if r.spec.Count > math.MaxInt {
			return r.errorf("exact count %d is too large", r.spec.Count)
		}
		r.count = max(0, int(r.spec.Count))
		return nil
	case resourceapi.DeviceAllocationModeAll:
		return s.determineAll(r)
	default:
		return r.errorf("unsupported count mode %s", r.spec.AllocationMode)
	}
}

// determineAll finds the devices that make up "all". It refuses to do so while
// some pool can't be seen as a whole, even if no device of it would be selected:
// nobody can tell yet.
func (s *search) determineAll(r *request) error {
	next := 0
	for _, p := range s.inventory.Pools {
		switch {
		case p.Incomplete:
			return r.errorf("asks for all devices, but resource pool %s is currently being updated", p)
		case p.Invalid != "":
			return r.errorf("asks for all devices, but resource pool %s is currently invalid", p)
		}
		for ; next < len(s.inventory.Candidates) && s.inventory.Candidates[next].Pool == p; next++ {
			isPart, err := s.isPartOfAll(r, s.inventory.Candidates[next])
			if err != nil {
				return err
			}
			if isPart {
				r.all = append(r.all, s.inventory.Candidates[next])
			}
		}
	}
	r.count = len(r.all)
	return nil
}

// isPartOfAll leaves out devices that would not have the requested capacity even
// if nobody else used them.
func (s *search) isPartOfAll(r *request, c *inventory.Candidate) (bool, error) {
	selected, err := s.isSelectable(r, c)
	if err != nil || !selected || !s.allocator.features.ConsumableCapacity {
		return selected, err
	}
	enough, err := capacity.HasRoom(c.Device, r.spec.Capacity, s.allocator.features.FractionalCapacityRange, nil, nil)
	if err != nil {
		return false, r.errorf("checking capacity for device %s: %w", c.Device.Name, err)
	}
	return enough, nil
}
