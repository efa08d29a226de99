// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// A claim holds the requests and constraints of a ResourceClaim. A request is a list of alternatives, usually with one entry.
type claim struct {
	requests    [][]*request
	constraints []constraint
}

// A request is a request of a claim without alternatives, or one alternative.
type request struct {
	name string
	// list is the name of the prioritized list that contains the alternative, or "".
	list        string
	class       string
	adminAccess bool
	// capacity is the requested capacity of each device.
	capacity map[resourceapi.QualifiedName]resource.Quantity
	all      bool
	// count is the number of devices that the request asks for.
	count int
	// selected lists the devices that pass the selectors, in order. usable has an entry for each of them, which is true if the
	// request may get the device.
	selected []*device
	usable   []bool
}

func (s *solver) prepare(api *resourceapi.ResourceClaim) (*claim, error) {
	result := &claim{}
	for i := range api.Spec.Devices.Requests {
		alternatives, err := s.prepareAlternatives(&api.Spec.Devices.Requests[i])
		if err != nil {
			return nil, fmt.Errorf("claim %s, request %s: %w", api.Name, api.Spec.Devices.Requests[i].Name, err)
		}
		result.requests = append(result.requests, alternatives)
	}
	for i := range api.Spec.Devices.Constraints {
		c, err := s.prepareConstraint(api, &api.Spec.Devices.Constraints[i])
		if err != nil {
			return nil, fmt.Errorf("claim %s, constraint #%d: %w", api.Name, i, err)
		}
		result.constraints = append(result.constraints, c)
	}
	for _, r := range slices.Concat(result.requests...) {
		defaults, err := s.defaults(r, r.class)
		if err != nil {
			return nil, fmt.Errorf("claim %s, request %s: %w", api.Name, r.name, err)
		}
		result.constraints = append(result.constraints, defaults...)
	}
	return result, nil
}

func (s *solver) prepareAlternatives(api *resourceapi.DeviceRequest) ([]*request, error) {
	if api.Exactly != nil {
		r, err := s.prepareRequest(api.Name, api.Exactly)
		return []*request{r}, err
	}
	if len(api.FirstAvailable) == 0 || !s.Features.PrioritizedList {
		return nil, fmt.Errorf("neither exactly nor firstAvailable, or the latter is off")
	}
	var result []*request
	for _, sub := range api.FirstAvailable {
		r, err := s.prepareRequest(api.Name+"/"+sub.Name, &resourceapi.ExactDeviceRequest{
			DeviceClassName: sub.DeviceClassName, Selectors: sub.Selectors, Tolerations: sub.Tolerations,
			AllocationMode: sub.AllocationMode, Count: sub.Count, Capacity: sub.Capacity,
		})
		if err != nil {
			return nil, err
		}
		r.list = api.Name
		result = append(result, r)
	}
	return result, nil
}

func (s *solver) prepareRequest(name string, api *resourceapi.ExactDeviceRequest) (*request, error) {
	r := &request{
		name:        name,
		class:       api.DeviceClassName,
		adminAccess: ptr.Deref(api.AdminAccess, false),
		all:         api.AllocationMode == resourceapi.DeviceAllocationModeAll,
		count:       int(api.Count),
	}
	if api.Capacity != nil {
		r.capacity = api.Capacity.Requests
	}
	for _, d := range s.devices {
		selected, err := s.selects(api, d)
		if err != nil {
			return nil, err
		}
		// A request for all devices does not include devices with too little capacity.
		if selected && s.isLargeEnough(r, d) {
			r.selected = append(r.selected, d)
			r.usable = append(r.usable, s.mayUse(api, d))
		}
	}
	if r.all {
		r.count = len(r.selected)
		for _, pool := range s.pools {
			if pool.incomplete || pool.invalid {
				return nil, fmt.Errorf("wants all devices, but pool %s/%s can't be seen as a whole%w", pool.driver, pool.name, structured.ErrFailedAllocationOnNode)
			}
		}
	}
	return r, nil
}

// selects reports whether a device is for the node and passes all selectors.
func (s *solver) selects(api *resourceapi.ExactDeviceRequest, d *device) (bool, error) {
	if len(d.BindingConditions) > 0 && !s.Features.DeviceBindingAndStatus {
		return false, nil
	}
	if ptr.Deref(d.slice.Spec.PerDeviceNodeSelection, false) && !matches(s.Node, d.NodeName, d.AllNodes, d.NodeSelector) {
		return false, nil
	}
	class := slices.IndexFunc(s.Classes, func(c *resourceapi.DeviceClass) bool { return c.Name == api.DeviceClassName })
	if class < 0 {
		return false, fmt.Errorf("device class %q does not exist", api.DeviceClassName)
	}
	for _, selector := range slices.Concat(s.Classes[class].Spec.Selectors, api.Selectors) {
		compiled := selectors.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return false, compiled.Error
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), dracel.Device{
			Driver: d.slice.Spec.Driver, Attributes: d.Attributes, Capacity: d.Capacity,
			AllowMultipleAllocations: d.AllowMultipleAllocations,
		})
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

var selectors = dracel.NewCache(1000, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})

// mayUse reports whether the request may get the device, by the device's taints and the features that it needs.
func (s *solver) mayUse(api *resourceapi.ExactDeviceRequest, d *device) bool {
	skips := len(d.slice.Spec.SkipNodeOperations) > 0
	if skips && !(s.Features.OptionalNodeOperations && slices.Contains(s.Node.Status.DeclaredFeatures, "DRAOptionalNodeOperations")) {
		return false
	}
	if len(d.ConsumesCounters) > 0 && !s.Features.PartitionableDevices {
		return false
	}
	return !s.Features.DeviceTaints || !slices.ContainsFunc(d.Taints, func(taint resourceapi.DeviceTaint) bool {
		return repels(taint) && !slices.ContainsFunc(api.Tolerations, func(toleration resourceapi.DeviceToleration) bool {
			return resourceclaim.ToleratesTaint(toleration, taint)
		})
	})
}

func repels(taint resourceapi.DeviceTaint) bool {
	return taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
}
