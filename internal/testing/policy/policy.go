// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy creates capacities of devices, request policies of capacities, and requests for capacities, in short form for
// tests.
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

// Default returns a policy with only a default: the amount that a request consumes if it does not name an amount.
func Default(amount string) *resourceapi.CapacityRequestPolicy {
	return &resourceapi.CapacityRequestPolicy{Default: Quantity(amount)}
}

// Range returns a policy that allows amounts in a range. Each argument may be empty, which means that the field is not set.
func Range(minimum, maximum, step string) *resourceapi.CapacityRequestPolicy {
	return &resourceapi.CapacityRequestPolicy{ValidRange: &resourceapi.CapacityRequestPolicyRange{
		Min: Quantity(minimum), Max: Quantity(maximum), Step: Quantity(step),
	}}
}

// OneOf returns a policy that allows only the given amounts.
func OneOf(amounts ...string) *resourceapi.CapacityRequestPolicy {
	policy := &resourceapi.CapacityRequestPolicy{}
	for _, amount := range amounts {
		policy.ValidValues = append(policy.ValidValues, resource.MustParse(amount))
	}
	return policy
}

// WithDefault sets the default of a policy and returns the policy.
func WithDefault(amount string, policy *resourceapi.CapacityRequestPolicy) *resourceapi.CapacityRequestPolicy {
	policy.Default = Quantity(amount)
	return policy
}

// Having returns a function that adds a capacity to a device. The policy of the capacity may be nil.
func Having(name, amount string, policy *resourceapi.CapacityRequestPolicy) func(*resourceapi.Device) {
	return func(d *resourceapi.Device) {
		if d.Capacity == nil {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
		}
		d.Capacity[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: resource.MustParse(amount), RequestPolicy: policy}
	}
}

// Requesting adds an amount of the named capacity to known, which may be nil, and returns the requirements.
func Requesting(known *resourceapi.CapacityRequirements, name, amount string) *resourceapi.CapacityRequirements {
	if known == nil {
		known = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{}}
	}
	known.Requests[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
	return known
}

// Device returns a device to which the functions, made by [Having], have added capacities.
func Device(capacities ...func(*resourceapi.Device)) resourceapi.Device {
	var d resourceapi.Device
	for _, add := range capacities {
		add(&d)
	}
	return d
}
