// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// poolGeneration is the generation of a pool that never changes.
const poolGeneration = 1

// ResourceSlices returns the slices that the drivers publish on a node. Each driver has one pool with the name of the node. The
// pool is split into slices, because the API limits the devices per slice. The slices are named <node>-<driver>-<number>. They
// share no memory with the topology.
func (t Topology) ResourceSlices(nodeName string) ([]*resourceapi.ResourceSlice, error) {
	if problems := validation.IsDNS1123Subdomain(nodeName); len(problems) > 0 {
		return nil, fmt.Errorf("node name %q: %s", nodeName, strings.Join(problems, "; "))
	}
	var result []*resourceapi.ResourceSlice
	for _, driver := range t.Drivers() {
		pool, err := t.poolSlices(nodeName, driver)
		if err != nil {
			return nil, err
		}
		result = append(result, pool...)
	}
	return result, nil
}

func (t Topology) poolSlices(nodeName, driver string) ([]*resourceapi.ResourceSlice, error) {
	devices := t.published(driver)
	chunks := slices.Collect(slices.Chunk(devices, devicesPerSlice(devices)))
	result := make([]*resourceapi.ResourceSlice, len(chunks))
	for i, chunk := range chunks {
		name := fmt.Sprintf("%s-%s-%d", nodeName, driver, i)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("node name %q: the name of its ResourceSlice would be %q: %s",
				nodeName, name, strings.Join(problems, "; "))
		}
		result[i] = newSlice(name, nodeName, driver, chunk)
		result[i].Spec.Pool.ResourceSliceCount = int64(len(chunks))
	}
	return result, nil
}

// published returns the devices of one driver as API objects.
func (t Topology) published(driver string) []resourceapi.Device {
	var devices []resourceapi.Device
	for _, d := range t.Devices {
		if d.Driver == driver {
			device := resourceapi.Device{Name: d.Name, Attributes: d.Attributes, Capacity: d.Capacity}
			if d.AllowMultipleAllocations {
				device.AllowMultipleAllocations = new(true)
			}
			devices = append(devices, *device.DeepCopy())
		}
	}
	return devices
}

// devicesPerSlice returns the maximum number of devices per slice. The API's limit is lower for slices with list attributes.
func devicesPerSlice(devices []resourceapi.Device) int {
	for _, device := range devices {
		for _, attribute := range device.Attributes {
			if isList(attribute) {
				return resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
			}
		}
	}
	return resourceapi.ResourceSliceMaxDevices
}

func isList(attribute resourceapi.DeviceAttribute) bool {
	return attribute.IntValues != nil || attribute.BoolValues != nil ||
		attribute.StringValues != nil || attribute.VersionValues != nil
}

func newSlice(name, nodeName, driver string, devices []resourceapi.Device) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		// Set TypeMeta for slices that are written to files. Typed clients don't need it.
		TypeMeta: metav1.TypeMeta{
			APIVersion: resourceapi.SchemeGroupVersion.String(),
			Kind:       "ResourceSlice",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			NodeName: &nodeName,
			Pool: resourceapi.ResourcePool{
				Name:       nodeName,
				Generation: poolGeneration,
			},
			Devices: devices,
		},
	}
}
