// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
)

// A Part adds something to a claim.
type Part func(*resourceapi.DeviceClaim)

// Claim returns a claim made of parts.
func Claim(name string, parts ...Part) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, add := range parts {
		add(&claim.Spec.Devices)
	}
	return claim
}

// Request requests count devices of a class.
func Request(name, class string, count int64) Part {
	return Exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	})
}

// RequestAll requests all devices of a class on a node.
func RequestAll(name, class string) Part {
	return Exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeAll,
	})
}

// One requests a certain device. Its class must have the name of its driver.
func One(device topology.Device) Part {
	return Exactly(device.Name, resourceapi.ExactDeviceRequest{
		DeviceClassName: device.Driver, Selectors: []resourceapi.DeviceSelector{Selector(device.Selector())},
	})
}

// Exactly adds a request.
func Exactly(name string, request resourceapi.ExactDeviceRequest) Part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests = append(claim.Requests, resourceapi.DeviceRequest{Name: name, Exactly: &request})
	}
}

// WithAdminAccess turns all previous requests into requests with admin access, which ignores other users of a device.
func WithAdminAccess(claim *resourceapi.DeviceClaim) {
	for i := range claim.Requests {
		claim.Requests[i].Exactly.AdminAccess = new(true)
	}
}

// Selector returns a selector with a CEL expression.
func Selector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// Refer refers to the definition with this name, over all requests unless some are named.
func Refer(name string, requests ...string) Part {
	return MatchAttribute(v1alpha1.AttributeDomain+"/"+name, requests...)
}

// MatchAttribute requires that an attribute has the same value in all devices.
func MatchAttribute(attribute string, requests ...string) Part {
	name := resourceapi.FullyQualifiedName(attribute)
	return Constrain(resourceapi.DeviceConstraint{Requests: requests, MatchAttribute: &name})
}

// DistinctAttribute requires that an attribute has different values in all devices.
func DistinctAttribute(attribute string, requests ...string) Part {
	name := resourceapi.FullyQualifiedName(attribute)
	return Constrain(resourceapi.DeviceConstraint{Requests: requests, DistinctAttribute: &name})
}

// Constrain adds a constraint.
func Constrain(constraint resourceapi.DeviceConstraint) Part {
	return func(claim *resourceapi.DeviceClaim) { claim.Constraints = append(claim.Constraints, constraint) }
}

// Configure adds configuration to a claim. Classes accept the same configuration.
func Configure(configuration resourceapi.DeviceConfiguration) Part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Config = append(claim.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: configuration})
	}
}

// Define defines a constraint in a claim.
func Define(name, expression string) Part { return Configure(Definition(name, expression)) }

// Definition returns the definition of a constraint.
func Definition(name, expression string) resourceapi.DeviceConfiguration {
	return Parameters(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind, "name": name, "expression": expression,
	})
}

// Parameters returns opaque parameters of our driver, valid or not.
func Parameters(fields map[string]string) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // strings always can be marshalled
	}
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// Constrained defines a constraint and refers to it, over all requests unless some are named.
func Constrained(name, expression string, requests ...string) Part {
	return func(claim *resourceapi.DeviceClaim) {
		Define(name, expression)(claim)
		Refer(name, requests...)(claim)
	}
}

// Contiguous returns an expression for n consecutive devices of a ring. It does not wrap around.
func Contiguous(driver string, n int) string { return Span(driver, "index", n) }

// Span returns an expression for devices whose values of an attribute span exactly n consecutive integers.
func Span(driver, attribute string, n int) string {
	values := fmt.Sprintf("devices.map(d, d.attributes[%q].%s)", driver, attribute)
	return fmt.Sprintf("%[1]s.max() - %[1]s.min() == %[2]d", values, n-1)
}

// Pod returns a pod that uses the claims, each in its own entry.
func Pod(name, profile string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: profile, Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
	}}
	for i, claim := range claims {
		use(pod, corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i), ResourceClaimName: &claim})
	}
	return pod
}

// PodFrom returns a pod whose claim is made from a template.
func PodFrom(name, profile, template string) *corev1.Pod {
	pod := Pod(name, profile)
	use(pod, corev1.PodResourceClaim{Name: "devices", ResourceClaimTemplateName: &template})
	return pod
}

func use(pod *corev1.Pod, claim corev1.PodResourceClaim) {
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, claim)
	resources := &pod.Spec.Containers[0].Resources
	resources.Claims = append(resources.Claims, corev1.ResourceClaim{Name: claim.Name})
}
