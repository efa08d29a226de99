// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func stripClaims(c *Case) bool {
	changed := len(c.Claims) > 1
	c.Claims = c.Claims[:min(1, len(c.Claims))]
	return changed
}

func stripRequests(d *resourceapi.DeviceClaim) bool {
	changed := len(d.Requests) > 1
	d.Requests = d.Requests[:min(1, len(d.Requests))]
	return changed
}

func stripZero(r *resourceapi.ExactDeviceRequest) bool {
	changed := r.Count == 0 && r.AllocationMode == resourceapi.DeviceAllocationModeExactCount
	if changed {
		r.Count = 1
	}
	return changed
}

func stripAll(r *resourceapi.ExactDeviceRequest) bool {
	changed := r.AllocationMode == resourceapi.DeviceAllocationModeAll
	if changed {
		r.AllocationMode, r.Count = resourceapi.DeviceAllocationModeExactCount, 1
	}
	return changed
}

// stripAlternatives turns prioritized lists into plain requests for what comes
// first.
func stripAlternatives(d *resourceapi.DeviceClaim) bool {
	changed := false
	for i := range d.Requests {
		if request := &d.Requests[i]; len(request.FirstAvailable) > 0 {
			request.Exactly = asRequest(&request.FirstAvailable[0])
			changed = empty(&request.FirstAvailable)
		}
	}
	return changed
}

func stripSecondAlternatives(d *resourceapi.DeviceClaim) bool {
	changed := false
	for i := range d.Requests {
		request := &d.Requests[i]
		changed = changed || len(request.FirstAvailable) > 1
		request.FirstAvailable = request.FirstAvailable[:min(1, len(request.FirstAvailable))]
	}
	return changed
}

// stripLargeAlternatives makes alternatives small of which a claim can't get
// enough.
func stripLargeAlternatives(d *resourceapi.DeviceClaim) bool {
	changed := false
	for i := range d.Requests {
		for j := range d.Requests[i].FirstAvailable {
			if alternative := &d.Requests[i].FirstAvailable[j]; alternative.Count > resourceapi.AllocationResultsMaxSize-2 {
				changed = replace(&alternative.Count, 1)
			}
		}
	}
	return changed
}

// stripAlternativeNames makes constraints and configurations for alternatives
// apply to nothing.
func stripAlternativeNames(d *resourceapi.DeviceClaim) bool {
	isAlternative := func(name string) bool { return strings.Contains(name, "/") }
	changed := false
	for i := range d.Constraints {
		if slices.ContainsFunc(d.Constraints[i].Requests, isAlternative) {
			d.Constraints[i].Requests = []string{"request-missing"}
			changed = true
		}
	}
	for i := range d.Config {
		if slices.ContainsFunc(d.Config[i].Requests, isAlternative) {
			d.Config[i].Requests = []string{"request-missing"}
			changed = true
		}
	}
	return changed
}

// stripAdminAccess leaves out alternatives, which have none.
func stripAdminAccess(c *Case) bool {
	changed := false
	c.Requests(func(_ *resourceapi.ResourceClaim, r *resourceapi.ExactDeviceRequest) bool {
		changed = changed || ptr.Deref(r.AdminAccess, false)
		r.AdminAccess = nil
		return true
	})
	return changed
}

func stripClassSelectors(c *Case) bool {
	changed := false
	for _, class := range c.Classes {
		changed = empty(&class.Spec.Selectors) || changed
	}
	return changed
}

func stripClassConfiguration(c *Case) bool {
	changed := false
	for _, class := range c.Classes {
		changed = empty(&class.Spec.Config) || changed
	}
	return changed
}

func stripConstraints(of func(resourceapi.DeviceConstraint) bool) func(*resourceapi.DeviceClaim) bool {
	return func(d *resourceapi.DeviceClaim) bool {
		before := len(d.Constraints)
		d.Constraints = slices.DeleteFunc(d.Constraints, of)
		return len(d.Constraints) < before
	}
}

func stripTolerations(c *Case) bool {
	hasTaints := false
	c.Devices(func(_ *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
		hasTaints = hasTaints || len(d.Taints) > 0
		return !hasTaints
	})
	return hasTaints && c.EditRequests(func(r *resourceapi.ExactDeviceRequest) bool { return empty(&r.Tolerations) })
}
