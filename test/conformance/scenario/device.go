// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func (p *poolDraw) device(slice *resourceapi.ResourceSlice) resourceapi.Device {
	device := resourceapi.Device{
		Name:             p.deviceName(),
		Attributes:       p.attributes(),
		Capacity:         p.capacity(),
		Taints:           p.taints(),
		ConsumesCounters: p.consumption(),
	}
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		p.devicePlacement().applyToDevice(&device)
	}
	if p.bindingConditions && p.maybe() {
		device.BindingConditions = []string{"example.com/attached"}
		device.BindingFailureConditions = []string{"example.com/attach-failed"}
	}
	if p.rarely() {
		device.BindsToNode = ptr.To(p.maybe())
	}
	if !p.Features.ConsumableCapacity && p.rarely() {
		device.AllowMultipleAllocations = ptr.To(p.maybe())
	}
	return device
}

// deviceName is unique in the pool but for rare duplicates, which make it invalid.
func (p *poolDraw) deviceName() string {
	if p.names == 0 || !p.oneIn2To(8) {
		p.names++
	}
	return fmt.Sprintf("device-%d", p.names)
}

func (p *poolDraw) devicePlacement() placement {
	if p.sometimes() {
		return p.placeElsewhere()
	}
	return p.placeHere()
}

// capacity is for selectors only: requests for it are not drawn yet.
func (p *poolDraw) capacity() map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		"memory": {Value: resource.MustParse(pick(p.generator, "10Gi", "20Gi", "40Gi"))},
	}
}
