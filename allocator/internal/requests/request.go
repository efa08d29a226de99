// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests reads and checks the requests of claims and their alternatives. A [Request] holds the requirements for
// devices. It does not depend on the devices of a node.
package requests

import (
	"fmt"
	"iter"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/apis/compat"
	celcompat "github.com/celset/celset/cel/compat"
)

// Request is a request or subrequest of a claim. After Prepare and DetermineCount it is never modified.
type Request struct {
	Claim *resourceapi.ResourceClaim
	// Name is the name of the request, or "request/subrequest" for a subrequest.
	Name string
	// Parent is the name of the request that contains the subrequest. It is "" for a request without alternatives.
	Parent string
	// Order is the index of the request in the claim.
	Order int
	Spec  *resourceapi.ExactDeviceRequest
	Class *resourceapi.DeviceClass
	// Count is the number of devices, at least 0. For allocationMode All it depends on the devices of the node.
	Count int
	// Derived maps the names of derived attributes to their expressions.
	Derived map[resourceapi.FullyQualifiedName]string
}

// Alternatives returns the number of alternatives of a request, or 1 for a request without alternatives.
func Alternatives(api *resourceapi.DeviceRequest) int { return max(1, len(api.FirstAvailable)) }

// New returns a request of a claim without alternatives, or one alternative of the request.
func New(claim *resourceapi.ResourceClaim, order, alternative int) Request {
	api := &claim.Spec.Devices.Requests[order]
	if len(api.FirstAvailable) == 0 {
		return Request{Claim: claim, Name: api.Name, Order: order, Spec: api.Exactly}
	}
	r := subrequest(api.Name, &api.FirstAvailable[alternative])
	r.Claim, r.Order = claim, order
	return r
}

// Each yields the requests of a claim. For a request with alternatives it yields each alternative.
func Each(claim *resourceapi.ResourceClaim) iter.Seq[Request] {
	return func(yield func(Request) bool) {
		for order := range claim.Spec.Devices.Requests {
			for i := range Alternatives(&claim.Spec.Devices.Requests[order]) {
				r := New(claim, order, i)
				if r.Spec != nil && !yield(r) {
					return
				}
			}
		}
	}
}

// AsksForMore reports whether a claim asks for more devices than the limit on any node. AllocationMode All counts as 0.
func AsksForMore(claim *resourceapi.ResourceClaim, limit int) bool {
	devices := 0
	for order := range claim.Spec.Devices.Requests {
		least := math.MaxInt
		for i := range Alternatives(&claim.Spec.Devices.Requests[order]) {
			r := New(claim, order, i)
			if r.Spec == nil || r.WantsAll() {
				least = 0
				break
			}
			least = min(least, int(min(max(0, r.Spec.Count), math.MaxInt)))
		}
		if least > limit-devices {
			return true
		}
		devices += least
	}
	return false
}

// subrequest converts a subrequest of the request parent. Subrequests have no admin access.
func subrequest(parent string, api *resourceapi.DeviceSubRequest) Request {
	spec := &resourceapi.ExactDeviceRequest{
		DeviceClassName: api.DeviceClassName,
		Selectors:       api.Selectors,
		AllocationMode:  api.AllocationMode,
		Count:           api.Count,
		Tolerations:     api.Tolerations,
		Capacity:        api.Capacity,
	}
	compat.SetDerivedAttributes(spec, compat.DerivedAttributesOf(api))
	return Request{Name: parent + "/" + api.Name, Parent: parent, Spec: spec}
}

// WantsAll reports whether the request has allocationMode All.
func (r *Request) WantsAll() bool {
	return r.Spec.AllocationMode == resourceapi.DeviceAllocationModeAll
}

// AdminAccess reports whether the request has admin access. It can then get devices that are in use.
func (r *Request) AdminAccess() bool {
	return ptr.Deref(r.Spec.AdminAccess, false)
}

// WantsCapacity reports whether the request asks for an amount of a capacity.
func (r *Request) WantsCapacity() bool {
	return r.Spec.Capacity != nil && len(r.Spec.Capacity.Requests) > 0
}

// IsSimple reports whether only selectors and exclusive allocations determine whether the request can get the device.
func (r *Request) IsSimple(c *inventory.Candidate) bool { return c.Ordinary && !r.WantsCapacity() }

// IsNamed reports whether names, from a constraint or configuration, contain the request or its parent.
func (r *Request) IsNamed(names []string) bool {
	return slices.Contains(names, r.Name) || r.Parent != "" && slices.Contains(names, r.Parent)
}

// Errorf returns an error that names the request.
func (r *Request) Errorf(format string, args ...any) error {
	return fmt.Errorf("claim %s, request %s: %w", klog.KObj(r.Claim), r.Name, fmt.Errorf(format, args...))
}

// CheckFeatures returns an error if the request uses a feature that is off and must not be ignored.
func CheckFeatures(features structured.Features, claim *resourceapi.ResourceClaim, api *resourceapi.DeviceRequest) error {
	r := &Request{Claim: claim, Name: api.Name}
	const disabled = "has %s, but the %s feature is disabled"
	if api.Exactly == nil && len(api.FirstAvailable) == 0 {
		return r.Errorf("neither exactly nor firstAvailable is set (unsupported request type?)")
	}
	if len(api.FirstAvailable) > 0 && !features.PrioritizedList {
		return r.Errorf(disabled, "subrequests", "DRAPrioritizedList")
	}
	if !features.ConsumableCapacity {
		if api.Exactly != nil && api.Exactly.Capacity != nil ||
			slices.ContainsFunc(api.FirstAvailable, func(sub resourceapi.DeviceSubRequest) bool { return sub.Capacity != nil }) {
			return r.Errorf(disabled, "capacity requests", "DRAConsumableCapacity")
		}
	}
	return nil
}

// Prepare reads the class and the derived attributes of the request. It fails if the class is missing or the request is not
// supported.
func (r *Request) Prepare(features structured.Features, classes structured.DeviceClassLister) error {
	if derived := compat.DerivedAttributes(r.Spec); len(derived) > 0 {
		if !*celcompat.DerivedAttributes(&features) {
			return r.Errorf("cannot handle request with derived attributes, the feature is disabled")
		}
		r.Derived = make(map[resourceapi.FullyQualifiedName]string, len(derived))
		for _, attribute := range derived {
			r.Derived[attribute.Name] = attribute.Expression
		}
	}
	for i, selector := range r.Spec.Selectors {
		if selector.CEL == nil {
			return r.Errorf("selector #%d: CEL expression empty (unsupported selector type?)", i)
		}
	}
	if r.Spec.AdminAccess != nil && !features.AdminAccess {
		return r.Errorf("admin access is requested, but the feature is disabled")
	}
	if r.Spec.DeviceClassName == "" {
		return r.Errorf("missing device class name (unsupported request type?)")
	}
	class, err := classes.Get(r.Spec.DeviceClassName)
	if err != nil {
		return r.Errorf("could not retrieve device class %s: %w", r.Spec.DeviceClassName, err)
	}
	r.Class = class
	return nil
}

// DetermineCount sets Count from the specification. For allocationMode All it leaves Count unchanged.
func (r *Request) DetermineCount() error {
	switch {
	case r.Spec.AllocationMode != resourceapi.DeviceAllocationModeExactCount:
		return r.Errorf("unsupported count mode %s", r.Spec.AllocationMode)
	case r.Spec.Count > math.MaxInt:
		return r.Errorf("exact count %d is too large", r.Spec.Count)
	}
	r.Count = max(0, int(r.Spec.Count))
	return nil
}
