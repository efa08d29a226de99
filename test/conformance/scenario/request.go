// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func (g *generator) request(name string) resourceapi.DeviceRequest {
	if !g.Features.PrioritizedList && g.fault() {
		return resourceapi.DeviceRequest{Name: name, FirstAvailable: []resourceapi.DeviceSubRequest{{
			Name: "alternative-1", DeviceClassName: g.className(),
			AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		}}}
	}
	exactly := &resourceapi.ExactDeviceRequest{
		DeviceClassName: g.className(),
		Selectors:       g.selectors(),
		AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
		AdminAccess:     g.adminAccess(),
		Tolerations:     g.tolerations(),
	}
	g.amount(exactly)
	g.addFault(exactly)
	return resourceapi.DeviceRequest{Name: name, Exactly: exactly}
}

// amount draws how many devices are wanted.
func (g *generator) amount(exactly *resourceapi.ExactDeviceRequest) {
	switch {
	case g.rarely():
		exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	case g.fault():
		exactly.Count = pick[int64](g, 33, 31, 1<<62)
	default:
		count := min(pick(g, 1, 1, 2, 1, 2, 1, 3, 1, 2, 4), g.MaxWanted-g.wanted)
		if g.oneIn2To(6) {
			count = 0
		}
		g.wanted += count
		exactly.Count = int64(count)
	}
}

// adminAccess is not nil only if that is an error or the feature is on.
func (g *generator) adminAccess() *bool {
	switch {
	case !g.Features.AdminAccess && !g.fault():
		return nil
	case g.oneIn2To(3):
		return ptr.To(true)
	case g.rarely():
		return ptr.To(false)
	default:
		return nil
	}
}

// addFault asks for what is off or from the future.
func (g *generator) addFault(exactly *resourceapi.ExactDeviceRequest) {
	switch {
	case g.fault():
		exactly.AllocationMode = "Most"
	case !g.Features.ConsumableCapacity && g.fault():
		exactly.Capacity = &resourceapi.CapacityRequirements{
			Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")},
		}
	case g.fault():
		// Not in classes: there upstream does not expect it.
		exactly.Selectors = append(exactly.Selectors, resourceapi.DeviceSelector{})
	case g.fault():
		exactly.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{Name: gpuDriver + "/half", Expression: "1"}}
	}
}
