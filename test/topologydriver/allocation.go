// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"fmt"
	"maps"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/topologydriver/checkpoint"
)

// allocated returns the devices of this driver that a claim has, in the order of the allocation. Their attributes are not set.
// Capacities are set only for shares. Devices and configuration of other drivers are ignored.
func (d *Driver) allocated(claim *resourceapi.ResourceClaim) ([]checkpoint.Device, error) {
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("is not allocated")
	}
	allocation := claim.Status.Allocation.Devices
	for i, config := range allocation.Config {
		if config.Opaque != nil && config.Opaque.Driver == d.name {
			return nil, fmt.Errorf("status.allocation.devices.config[%d] (%s) has parameters for this driver, which supports no parameters: remove them from the claim or the DeviceClass",
				i, config.Source)
		}
	}
	var devices []checkpoint.Device
	for i, result := range allocation.Results {
		if result.Driver != d.name {
			continue
		}
		if result.Pool != d.node {
			return nil, fmt.Errorf("status.allocation.devices.results[%d]: device %s is of pool %q, but the pool of this node is %q",
				i, result.Device, result.Pool, d.node)
		}
		devices = append(devices, checkpoint.Device{
			Request: result.Request, Pool: result.Pool, Name: result.Device, Admin: ptr.Deref(result.AdminAccess, false),
			Share: ptr.Deref(result.ShareID, ""), Capacity: maps.Clone(result.ConsumedCapacity),
		})
	}
	return devices, nil
}

// withPublished sets the published attributes and capacities of devices. It returns an error if a device is not in the
// topology. This can happen if the topology has changed since the allocation.
func (d *Driver) withPublished(devices []checkpoint.Device) ([]checkpoint.Device, error) {
	known := *d.devices.Load()
	result := make([]checkpoint.Device, len(devices))
	for i, device := range devices {
		published, ok := known[device.Name]
		if !ok {
			return nil, fmt.Errorf("device %s of pool %s is not one of the %d devices of this driver. The topology may have changed since the allocation. Delete the pods that use the claim, so that the claim is allocated again",
				device.Name, device.Pool, len(known))
		}
		device.Attributes = attributesOf(published)
		if device.Share == "" {
			device.Capacity = capacityOf(published)
		}
		result[i] = device
	}
	return result, nil
}

// sameDevice reports whether a and b are the same device or share. It ignores attributes and capacities, because they may have
// changed since the preparation.
func sameDevice(a, b checkpoint.Device) bool {
	return a.Request == b.Request && a.Pool == b.Pool && a.Name == b.Name && a.Admin == b.Admin && a.Share == b.Share
}

// names formats devices for messages.
func names(devices []checkpoint.Device) string {
	list := make([]string, len(devices))
	for i, device := range devices {
		list[i] = device.Name
	}
	return strings.Join(list, ", ")
}
