// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// request is one request of a claim, checked and ready for the search.
type request struct {
	claim *resourceapi.ResourceClaim
	name  string
	spec  *resourceapi.ExactDeviceRequest
	class *resourceapi.DeviceClass
	// count is the number of devices wanted, not negative.
	count int
	// all is the set of devices wanted by allocation mode All, in order.
	all []*candidate
	// constraints are those that cover the request, in the order of the claim.
	constraints []constraint
	// selectable remembers for each position whether the device passed the
	// selectors. Neither depends on what else is allocated.
	selectable []selection
}

func (r *request) wantsAll() bool {
	return r.spec.AllocationMode == resourceapi.DeviceAllocationModeAll
}

func (r *request) adminAccess() bool {
	return ptr.Deref(r.spec.AdminAccess, false)
}

// errorf makes an error about the request.
func (r *request) errorf(format string, args ...any) error {
	return fmt.Errorf("claim %s, request %s: %w", klog.KObj(r.claim), r.name, fmt.Errorf(format, args...))
}

// newRequest checks that a request is understood and its class exists.
func (s *search) newRequest(claim *resourceapi.ResourceClaim, api *resourceapi.DeviceRequest) (*request, error) {
	r := &request{claim: claim, name: api.Name, spec: api.Exactly, selectable: make([]selection, len(s.candidates))}
	if err := s.refuseRequest(r, api); err != nil {
		return nil, err
	}
	for i, selector := range r.spec.Selectors {
		if selector.CEL == nil {
			return nil, r.errorf("selector #%d: CEL expression empty (unsupported selector type?)", i)
		}
	}
	if r.spec.AdminAccess != nil && !s.features.AdminAccess {
		return nil, r.errorf("admin access is requested, but the feature is disabled")
	}
	if r.spec.DeviceClassName == "" {
		return nil, r.errorf("missing device class name (unsupported request type?)")
	}
	class, err := s.classes.Get(r.spec.DeviceClassName)
	if err != nil {
		return nil, r.errorf("could not retrieve device class %s: %w", r.spec.DeviceClassName, err)
	}
	r.class = class
	return r, s.determineCount(r)
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
	for _, p := range s.pools {
		switch {
		case p.incomplete:
			return r.errorf("asks for all devices, but resource pool %s is currently being updated", p)
		case p.invalid != "":
			return r.errorf("asks for all devices, but resource pool %s is currently invalid", p)
		}
		for ; next < len(s.candidates) && s.candidates[next].belongsTo(p); next++ {
			selected, err := s.isSelectable(r, s.candidates[next])
			if err != nil {
				return err
			}
			if selected {
				r.all = append(r.all, s.candidates[next])
			}
		}
	}
	r.count = len(r.all)
	return nil
}

func (c *candidate) belongsTo(p *pool) bool {
	return c.slice.Spec.Driver == p.driver && c.slice.Spec.Pool.Name == p.name
}
