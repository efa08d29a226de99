// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"context"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/celset/celset/internal/topology"
)

// devicesOf returns the devices of a driver by name.
func devicesOf(t topology.Topology, driver string) map[string]topology.Device {
	result := map[string]topology.Device{}
	for _, device := range t.Devices {
		if device.Driver == driver {
			result[device.Name] = device
		}
	}
	return result
}

// resources returns the ResourceSlices of a driver for a node. They form one pool with the node's name.
func resources(t topology.Topology, driver, node string) (resourceslice.DriverResources, error) {
	all, err := t.ResourceSlices(node)
	if err != nil {
		return resourceslice.DriverResources{}, err
	}
	var slices []resourceslice.Slice
	for _, slice := range all {
		if slice.Spec.Driver == driver {
			slices = append(slices, resourceslice.Slice{Devices: slice.Spec.Devices})
		}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: {Slices: slices}}}, nil
}

// Publish replaces the devices of the node by this driver's devices in another topology. It waits until an API server is
// available; Stop ends the wait. It does not wait until the devices are stored. Prepared claims keep their devices.
func (d *Driver) Publish(ctx context.Context, t topology.Topology) error {
	published, err := resources(t, d.name, d.node)
	if err != nil {
		return err
	}
	devices := devicesOf(t, d.name)
	if len(devices) == 0 {
		return fmt.Errorf("%s: has no devices of driver %s", t, d.name)
	}
	d.devices.Store(&devices)
	d.metrics.published(d.name, len(devices))
	return d.helper.PublishResources(ctx, published)
}

// HandleError handles errors of the helper library's goroutines, see [kubeletplugin.DRAPlugin]. An error that can't be retried
// ends the driver, so that the pod restarts and users notice the error.
func (d *Driver) HandleError(ctx context.Context, err error, msg string) {
	runtime.HandleErrorWithContext(ctx, err, msg, "driver", d.name)
	publishing := errors.Is(err, kubeletplugin.ErrRecoverable)
	if publishing {
		d.metrics.publishingFailed(d.name)
	}
	var dropped *resourceslice.DroppedFieldsError
	if publishing && !apierrors.IsInvalid(err) && !errors.As(err, &dropped) {
		return
	}
	d.fail(fmt.Errorf("driver %s: %s: %w", d.name, msg, err))
}

// attributesOf returns a copy of a device's attributes.
func attributesOf(device topology.Device) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	published := resourceapi.Device{Attributes: device.Attributes}
	return published.DeepCopy().Attributes
}

// capacityOf returns the total capacity of a device, or nil if it has no capacity.
func capacityOf(device topology.Device) map[resourceapi.QualifiedName]resource.Quantity {
	if len(device.Capacity) == 0 {
		return nil
	}
	result := make(map[resourceapi.QualifiedName]resource.Quantity, len(device.Capacity))
	for name, capacity := range device.Capacity {
		result[name] = capacity.Value.DeepCopy()
	}
	return result
}
