// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/policy"
)

type claimBuilder struct{ *resourceapi.ResourceClaim }

// claim is the claim default/<name>.
func claim(name string) *claimBuilder {
	return &claimBuilder{&resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}}
}

// want adds a request for count devices of the class of the driver.
func (b *claimBuilder) want(request string, count int64, selectors ...string) *claimBuilder {
	b.Spec.Devices.Requests = append(b.Spec.Devices.Requests, resourceapi.DeviceRequest{
		Name: request,
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: driver,
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           count,
			Selectors:       celSelectors(selectors),
		},
	})
	return b
}

func (b *claimBuilder) wantAll(request string, selectors ...string) *claimBuilder {
	return b.want(request, 0, selectors...).edit(func(r *resourceapi.ExactDeviceRequest) {
		r.AllocationMode = resourceapi.DeviceAllocationModeAll
	})
}

// edit changes the request added last.
func (b *claimBuilder) edit(edit func(*resourceapi.ExactDeviceRequest)) *claimBuilder {
	edit(b.Spec.Devices.Requests[len(b.Spec.Devices.Requests)-1].Exactly)
	return b
}

func (b *claimBuilder) class(name string) *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) { r.DeviceClassName = name })
}

func (b *claimBuilder) admin() *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) { r.AdminAccess = ptr.To(true) })
}

func (b *claimBuilder) match(attribute string, requests ...string) *claimBuilder {
	b.Spec.Devices.Constraints = append(b.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return b
}

func (b *claimBuilder) distinct(attribute string, requests ...string) *claimBuilder {
	b.Spec.Devices.Constraints = append(b.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return b
}

// cel refers to a CEL constraint.
func (b *claimBuilder) cel(name string, requests ...string) *claimBuilder {
	return b.match(v1alpha1.AttributeDomain+"/"+name, requests...)
}

// define adds the definition of a CEL constraint.
func (b *claimBuilder) define(name, expression string, variables ...v1alpha1.Variable) *claimBuilder {
	return b.configure(definitionOf(name, expression, variables...))
}

func (b *claimBuilder) configure(configuration resourceapi.DeviceConfiguration, requests ...string) *claimBuilder {
	b.Spec.Devices.Config = append(b.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		Requests: requests, DeviceConfiguration: configuration,
	})
	return b
}

// firstAvailable adds a request that is met by the first of the alternatives that
// can be had.
func (b *claimBuilder) firstAvailable(request string, alternatives ...resourceapi.DeviceSubRequest) *claimBuilder {
	b.Spec.Devices.Requests = append(b.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: request, FirstAvailable: alternatives})
	return b
}

// sub is an alternative of count devices of the class of the driver.
func sub(name string, count int64, selectors ...string) resourceapi.DeviceSubRequest {
	return subOf(driver, name, count, selectors...)
}

func subOf(class, name string, count int64, selectors ...string) resourceapi.DeviceSubRequest {
	return resourceapi.DeviceSubRequest{
		Name: name, DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		Selectors: celSelectors(selectors),
	}
}

func subAll(name string, selectors ...string) resourceapi.DeviceSubRequest {
	s := sub(name, 0, selectors...)
	s.AllocationMode = resourceapi.DeviceAllocationModeAll
	return s
}

// derive gives the request added last a derived attribute.
func (b *claimBuilder) derive(attribute, expression string) *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) {
		r.DerivedAttributes = append(r.DerivedAttributes, resourceapi.DeviceDerivedAttribute{
			Name: resourceapi.FullyQualifiedName(attribute), Expression: expression,
		})
	})
}

// capacity requests an amount of a capacity for the request added last.
func (b *claimBuilder) capacity(name, amount string) *claimBuilder {
	return b.edit(func(r *resourceapi.ExactDeviceRequest) { r.Capacity = policy.Requesting(r.Capacity, name, amount) })
}
