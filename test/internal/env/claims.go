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

// A Part adds a request, a constraint or configuration to a claim.
type Part func(*resourceapi.DeviceClaim)

// Claim returns a claim that consists of the parts.
func Claim(name string, parts ...Part) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, add := range parts {
		add(&claim.Spec.Devices)
	}
	return claim
}

// Request returns a part that requests count devices of a class.
func Request(name, class string, count int64) Part {
	return Exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	})
}

// RequestAll returns a part that requests all devices of a class on the node.
func RequestAll(name, class string) Part {
	return Exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeAll,
	})
}

// One returns a part that requests the given device. The class must have the name of the device's driver.
func One(device topology.Device) Part {
	return Exactly(device.Name, resourceapi.ExactDeviceRequest{
		DeviceClassName: device.Driver, Selectors: []resourceapi.DeviceSelector{Selector(device.Selector())},
	})
}

// Exactly returns a part that adds the request.
func Exactly(name string, request resourceapi.ExactDeviceRequest) Part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests = append(claim.Requests, resourceapi.DeviceRequest{Name: name, Exactly: &request})
	}
}

// WithAdminAccess is a part that changes all earlier requests of the claim to admin access. Such a request can get a device
// that is in use.
func WithAdminAccess(claim *resourceapi.DeviceClaim) {
	for i := range claim.Requests {
		claim.Requests[i].Exactly.AdminAccess = new(true)
	}
}

// Selector returns a selector with a CEL expression.
func Selector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// Refer returns a part that refers to the definition with the name. The constraint covers the named requests, or all requests.
func Refer(name string, requests ...string) Part {
	return MatchAttribute(v1alpha1.AttributeDomain+"/"+name, requests...)
}

// MatchAttribute returns a part that requires the same value of an attribute for all devices.
func MatchAttribute(attribute string, requests ...string) Part {
	name := resourceapi.FullyQualifiedName(attribute)
	return Constrain(resourceapi.DeviceConstraint{Requests: requests, MatchAttribute: &name})
}

// DistinctAttribute returns a part that requires different values of an attribute for all devices.
func DistinctAttribute(attribute string, requests ...string) Part {
	name := resourceapi.FullyQualifiedName(attribute)
	return Constrain(resourceapi.DeviceConstraint{Requests: requests, DistinctAttribute: &name})
}

// Constrain returns a part that adds the constraint.
func Constrain(constraint resourceapi.DeviceConstraint) Part {
	return func(claim *resourceapi.DeviceClaim) { claim.Constraints = append(claim.Constraints, constraint) }
}

// Configure returns a part that adds configuration. DeviceClasses accept the same configuration.
func Configure(configuration resourceapi.DeviceConfiguration) Part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Config = append(claim.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: configuration})
	}
}

// Define returns a part that defines a constraint.
func Define(name, expression string) Part { return Configure(Definition(name, expression)) }

// Definition returns configuration with the definition of a constraint, for a claim or a class.
func Definition(name, expression string) resourceapi.DeviceConfiguration {
	return Parameters(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind, "name": name, "expression": expression,
	})
}

// Parameters returns configuration with opaque parameters for the driver celset.dev. The fields may be invalid.
func Parameters(fields map[string]string) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// Constrained returns a part that defines a constraint and refers to it. The constraint covers the named requests, or all
// requests.
func Constrained(name, expression string, requests ...string) Part {
	return func(claim *resourceapi.DeviceClaim) {
		Define(name, expression)(claim)
		Refer(name, requests...)(claim)
	}
}

// Contiguous returns an expression that is true for n devices with consecutive indices. The index does not wrap around.
func Contiguous(driver string, n int) string { return Span(driver, "index", n) }

// Span returns an expression that is true if the difference between the largest and the smallest value of an attribute is n-1.
func Span(driver, attribute string, n int) string {
	values := fmt.Sprintf("devices.map(d, d.attributes[%q].%s)", driver, attribute)
	return fmt.Sprintf("%[1]s.max() - %[1]s.min() == %[2]d", values, n-1)
}

// Pod returns a pod that uses the claims. Each claim has its own entry in spec.resourceClaims.
func Pod(name, profile string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		SchedulerName: profile, Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
	}}
	for i, claim := range claims {
		use(pod, corev1.PodResourceClaim{Name: fmt.Sprintf("claim-%d", i), ResourceClaimName: &claim})
	}
	return pod
}

// PodFrom returns a pod whose claim is created from a template.
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
