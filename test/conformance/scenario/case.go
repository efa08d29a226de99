// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Case is the input of one allocation.
type Case struct {
	// Description says what a stored case is about.
	Description string `json:"description,omitempty"`
	// Outcome says what must come of a stored case: found, none, on-node or fatal.
	Outcome string `json:"outcome,omitempty"`
	// Features are the optional features that are on.
	Features structured.Features `json:"features"`
	// Node is the node to allocate for. Slices may be for others.
	Node    *v1.Node                     `json:"node"`
	Slices  []*resourceapi.ResourceSlice `json:"slices,omitempty"`
	Classes []*resourceapi.DeviceClass   `json:"classes,omitempty"`
	Claims  []*resourceapi.ResourceClaim `json:"claims,omitempty"`
	// Allocated are the devices in use. They need not exist any more.
	Allocated []Device `json:"allocated,omitempty"`
	// Shares are allocations of devices that can be allocated more than once.
	Shares []Share `json:"shares,omitempty"`
}

// Device names a device.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

func (d Device) id() structured.DeviceID { return structured.MakeDeviceID(d.Driver, d.Pool, d.Device) }

// Share is one allocation of a device that can be allocated more than once.
type Share struct {
	Device  `json:",inline"`
	ShareID string `json:"shareID"`
	// Consumed may be nil.
	Consumed map[resourceapi.QualifiedName]resource.Quantity `json:"consumed,omitempty"`
}

// State is the case's allocated state as allocators take it. What it does not have
// is nil.
func (c *Case) State() structured.AllocatedState {
	var state structured.AllocatedState
	if len(c.Allocated) > 0 {
		state.AllocatedDevices = sets.New[structured.DeviceID]()
	}
	for _, d := range c.Allocated {
		state.AllocatedDevices.Insert(d.id())
	}
	if len(c.Shares) > 0 {
		state.AllocatedSharedDeviceIDs = sets.New[structured.SharedDeviceID]()
		state.AggregatedCapacity = structured.NewConsumedCapacityCollection()
	}
	for _, share := range c.Shares {
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(share.id(), ptr.To(types.UID(share.ShareID))))
		if share.Consumed != nil {
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(share.id(), share.Consumed))
		}
	}
	return state
}

// ClassLister gives access to the classes of a case.
type ClassLister []*resourceapi.DeviceClass

var _ structured.DeviceClassLister = ClassLister{}

// List implements [structured.DeviceClassLister].
func (l ClassLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

// Get implements [structured.DeviceClassLister].
func (l ClassLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: resourceapi.GroupName, Resource: "deviceclasses"}, name)
}

// Clone returns a deep copy.
func (c *Case) Clone() *Case {
	result := *c
	result.Node = c.Node.DeepCopy()
	result.Slices = cloneAll(c.Slices)
	result.Classes = cloneAll(c.Classes)
	result.Claims = cloneAll(c.Claims)
	result.Allocated = slices.Clone(c.Allocated)
	result.Shares = slices.Clone(c.Shares)
	for i := range result.Shares {
		result.Shares[i].Consumed = cloneAmounts(c.Shares[i].Consumed)
	}
	return &result
}

func cloneAmounts(from map[resourceapi.QualifiedName]resource.Quantity) map[resourceapi.QualifiedName]resource.Quantity {
	result := maps.Clone(from)
	for name, amount := range result {
		result[name] = amount.DeepCopy()
	}
	return result
}

func cloneAll[T interface{ DeepCopy() T }](from []T) []T {
	if from == nil {
		return nil
	}
	result := make([]T, len(from))
	for i := range from {
		result[i] = from[i].DeepCopy()
	}
	return result
}

// Devices calls visit for each device of each slice, of all nodes and
// generations, until it returns false.
func (c *Case) Devices(visit func(*resourceapi.ResourceSlice, *resourceapi.Device) bool) {
	for _, slice := range c.Slices {
		for i := range slice.Spec.Devices {
			if !visit(slice, &slice.Spec.Devices[i]) {
				return
			}
		}
	}
}

// Requests calls visit for each request that is of the kind "exactly", until it
// returns false.
func (c *Case) Requests(visit func(*resourceapi.ResourceClaim, *resourceapi.ExactDeviceRequest) bool) {
	for _, claim := range c.Claims {
		for i := range claim.Spec.Devices.Requests {
			if exactly := claim.Spec.Devices.Requests[i].Exactly; exactly != nil && !visit(claim, exactly) {
				return
			}
		}
	}
}

// EditRequests calls edit for each request, and for each alternative as if it were
// a request of its own, and says whether any call returned true.
func (c *Case) EditRequests(edit func(*resourceapi.ExactDeviceRequest) bool) bool {
	changed := false
	for _, claim := range c.Claims {
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			if request.Exactly != nil {
				changed = edit(request.Exactly) || changed
			}
			for j := range request.FirstAvailable {
				exactly := asRequest(&request.FirstAvailable[j])
				changed = edit(exactly) || changed
				request.FirstAvailable[j] = asAlternative(request.FirstAvailable[j].Name, exactly)
			}
		}
	}
	return changed
}

func asRequest(alternative *resourceapi.DeviceSubRequest) *resourceapi.ExactDeviceRequest {
	return &resourceapi.ExactDeviceRequest{
		DeviceClassName:   alternative.DeviceClassName,
		Selectors:         alternative.Selectors,
		AllocationMode:    alternative.AllocationMode,
		Count:             alternative.Count,
		Tolerations:       alternative.Tolerations,
		Capacity:          alternative.Capacity,
		DerivedAttributes: alternative.DerivedAttributes,
	}
}

func asAlternative(name string, request *resourceapi.ExactDeviceRequest) resourceapi.DeviceSubRequest {
	return resourceapi.DeviceSubRequest{
		Name:              name,
		DeviceClassName:   request.DeviceClassName,
		Selectors:         request.Selectors,
		AllocationMode:    request.AllocationMode,
		Count:             request.Count,
		Tolerations:       request.Tolerations,
		Capacity:          request.Capacity,
		DerivedAttributes: request.DerivedAttributes,
	}
}
