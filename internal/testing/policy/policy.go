// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy builds capacities of devices, their request policies, and requests for them, in a compact form for tests.
package policy

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Quantity parses a quantity. It returns nil for an empty text.
func Quantity(text string) *resource.Quantity {
	if text == "" {
		return nil
	}
	return ptr.To(resource.MustParse(text))
}

// Default returns a policy with a default: the amount that is consumed if nothing is requested.
func Default(amount string) *resourceapi.CapacityRequestPolicy {
	return &resourceapi.CapacityRequestPolicy{Default: Quantity(amount)}
}

// Range returns a policy that allows a range of amounts. Each argument may be empty.
func Range(minimum, maximum, step string) *resourceapi.CapacityRequestPolicy {
	return &resourceapi.CapacityRequestPolicy{ValidRange: &resourceapi.CapacityRequestPolicyRange{
		Min: Quantity(minimum), Max: Quantity(maximum), Step: Quantity(step),
	}}
}

// OneOf returns a policy that allows the given amounts.
func OneOf(amounts ...string) *resourceapi.CapacityRequestPolicy {
	policy := &resourceapi.CapacityRequestPolicy{}
	for _, amount := range amounts {
		policy.ValidValues = append(policy.ValidValues, resource.MustParse(amount))
	}
	return policy
}

// WithDefault adds a default to a policy.
func WithDefault(amount string, policy *resourceapi.CapacityRequestPolicy) *resourceapi.CapacityRequestPolicy {
	policy.Default = Quantity(amount)
	return policy
}

// Having returns a function that gives a device a capacity. The policy may be nil.
func Having(name, amount string, policy *resourceapi.CapacityRequestPolicy) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		if d.Capacity == nil {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
		}
		d.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: resource.MustParse(amount), RequestPolicy: policy}
	}
}

// Requesting adds an amount to the requests and returns them. known may be nil.
func Requesting(known *resourceapi.CapacityRequirements, name, amount string) *resourceapi.CapacityRequirements {
	if known == nil {
		known = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{}}
	}
	known.Requests[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
	return known
}

// Device returns a device with capacities made by [Having].
func Device(capacities ...func(*resourceapi.Device)) resourceapi.Device {
	var d resourceapi.Device
	for _, add := range capacities {
		add(&d)
	}
	return d
}
