// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func (p *poolDraw) device(slice *resourceapi.ResourceSlice) resourceapi.Device {
	device := resourceapi.Device{
		Name:                     p.deviceName(),
		Attributes:               p.attributes(),
		Capacity:                 p.capacity(),
		Taints:                   p.taints(),
		ConsumesCounters:         p.consumption(),
		AllowMultipleAllocations: p.allowsMultipleAllocations(),
	}
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		p.devicePlacement().applyToDevice(&device)
	}
	if p.bindingConditions && !p.sometimes() {
		device.BindingConditions = []string{"example.com/attached"}
		device.BindingFailureConditions = []string{"example.com/attach-failed"}
	}
	if p.rarely() {
		device.BindsToNode = ptr.To(p.maybe())
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

// crowdSize is the largest number of devices that a crowd adds.
const crowdSize = 34

// crowd fills the slice with copies of its first device: about as many as a claim
// may get.
func (p *poolDraw) crowd(slice *resourceapi.ResourceSlice) {
	p.crowded = true
	for range p.between(crowdSize-12, crowdSize) {
		device := slice.Spec.Devices[0].DeepCopy()
		p.names++
		device.Name = fmt.Sprintf("device-%d", p.names)
		slice.Spec.Devices = append(slice.Spec.Devices, *device)
	}
}
