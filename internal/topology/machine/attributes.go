// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Attributes and capacities of devices, by name.
type (
	attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	capacities = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity
)

// Attributes that drivers of several vendors publish.
const (
	pcieRoot = resourceapi.QualifiedName("resource.kubernetes.io/pcieRoot")
	pciBusID = resourceapi.QualifiedName("resource.kubernetes.io/pciBusID")
	numaNode = resourceapi.QualifiedName("resource.kubernetes.io/numaNode")
)

func text(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}

func texts(values ...string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValues: values}
}

func number(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: new(int64(value))}
}

func truth(value bool) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{BoolValue: &value}
}

func version(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{VersionValue: &value}
}

func quantity(value string) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: resource.MustParse(value)}
}

// with adds attributes to those that are the same for all devices of a kind.
func with(common, more attributes) attributes {
	result := maps.Clone(common)
	maps.Copy(result, more)
	return result
}
