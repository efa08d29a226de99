// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/internal/search"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device"
)

// Allocation is one of the possible allocations for claims on a node.
type Allocation struct {
	// Results has one entry for each claim.
	Results []resourceapi.AllocationResult
	// Devices holds the devices of all claims, in the order of the results.
	Devices []AllocatedDevice
}

// AllocatedDevice is a device with its slice.
type AllocatedDevice struct {
	*resourceapi.Device
	Slice *resourceapi.ResourceSlice
}

// AllocateEach calls yield for each possible allocation of the claims on the node, in the order of the search, until yield
// returns false. It ignores preferences. Without preferences the first allocation is the result of Allocate. If several
// allocations differ only in devices that are equal in read and in everything that the claims read, AllocateEach may yield only
// the first of them. After the last allocation it returns the error of Allocate, or nil.
func (a *Allocator) AllocateEach(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim, read device.ReadSet, yield func(Allocation) bool) error {
	p := a.planner.PlanFor(claims).Reading(view.NewReadSet(read))
	on, err := p.On(node)
	if err != nil {
		return err
	}
	s, err := search.New(ctx, on, nil)
	if err != nil {
		return err
	}
	found := false
	for solution := range s.Solutions() {
		results, err := s.Results(solution)
		if err != nil {
			return err
		}
		found = true
		allocation := Allocation{Results: results}
		for _, c := range solution.Choices {
			allocation.Devices = append(allocation.Devices, AllocatedDevice{c.Device, c.Slice})
		}
		if !yield(allocation) {
			break
		}
	}
	s.Work.Charge()
	switch failure, isAboutNode := errors.AsType[*EvaluationError](s.Err); {
	case isAboutNode:
		return a.planner.Failure(failure)
	case s.Err != nil || found:
		return s.Err
	case !a.planner.Reasons:
		return nil
	default:
		return a.planner.Refusal(s.Reason())
	}
}

// IsFree reports whether no device in the results is exclusively allocated to another claim.
func (a *Allocator) IsFree(results []resourceapi.AllocationResult) bool {
	return !slices.ContainsFunc(results, func(r resourceapi.AllocationResult) bool {
		return slices.ContainsFunc(r.Devices.Results, func(d resourceapi.DeviceRequestAllocationResult) bool {
			return !ptr.Deref(d.AdminAccess, false) && a.planner.State.IsExclusive(structured.MakeDeviceID(d.Driver, d.Pool, d.Device))
		})
	})
}
