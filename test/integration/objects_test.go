// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

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

// part adds something to a claim.
type part func(*resourceapi.DeviceClaim)

func claimOf(name string, parts ...part) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, add := range parts {
		add(&claim.Spec.Devices)
	}
	return claim
}

// request wants count devices of a class.
func request(name, class string, count int64) part {
	return exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	})
}

// requestAll wants all devices of a class on a node.
func requestAll(name, class string) part {
	return exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeAll,
	})
}

// one wants a certain device. Its class must be named like its driver.
func one(device topology.Device) part {
	return exactly(device.Name, resourceapi.ExactDeviceRequest{
		DeviceClassName: device.Driver,
		Selectors:       []resourceapi.DeviceSelector{selector(device.Selector())},
	})
}

// withAdminAccess turns the requests so far into requests for access to devices
// that others may be using.
func withAdminAccess(claim *resourceapi.DeviceClaim) {
	for i := range claim.Requests {
		claim.Requests[i].Exactly.AdminAccess = new(true)
	}
}

func exactly(name string, request resourceapi.ExactDeviceRequest) part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests = append(claim.Requests, resourceapi.DeviceRequest{Name: name, Exactly: &request})
	}
}

func selector(expression string) resourceapi.DeviceSelector {
	return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}
}

// refer is a reference to the definition of that name, over all requests unless
// some are named.
func refer(name string, requests ...string) part {
	return matchAttribute(v1alpha1.AttributeDomain+"/"+name, requests...)
}

func matchAttribute(attribute string, requests ...string) part {
	name := resourceapi.FullyQualifiedName(attribute)
	return constrain(resourceapi.DeviceConstraint{Requests: requests, MatchAttribute: &name})
}

func distinctAttribute(attribute string, requests ...string) part {
	name := resourceapi.FullyQualifiedName(attribute)
	return constrain(resourceapi.DeviceConstraint{Requests: requests, DistinctAttribute: &name})
}

func constrain(constraint resourceapi.DeviceConstraint) part {
	return func(claim *resourceapi.DeviceClaim) { claim.Constraints = append(claim.Constraints, constraint) }
}

// configure puts configuration into a claim that would do in a class as well.
func configure(configuration resourceapi.DeviceConfiguration) part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Config = append(claim.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: configuration})
	}
}

// define defines a constraint in a claim.
func define(name, expression string) part { return configure(definition(name, expression)) }

func definition(name, expression string) resourceapi.DeviceConfiguration {
	return parameters(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.Kind, "name": name, "expression": expression,
	})
}

// parameters are of our driver, right or wrong.
func parameters(fields map[string]string) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // strings always can be marshalled
	}
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// constrained defines a constraint and refers to it, over all requests unless
// some are named.
func constrained(name, expression string, requests ...string) part {
	return func(claim *resourceapi.DeviceClaim) {
		define(name, expression)(claim)
		refer(name, requests...)(claim)
	}
}

// contiguous is an expression for n devices of a ring in a row. Where the ring
// closes it sees an end.
func contiguous(driver string, n int) string {
	return fmt.Sprintf("devices.map(d, d.attributes[%[1]q].index).max() - devices.map(d, d.attributes[%[1]q].index).min() == %[2]d", driver, n-1)
}

// podOf makes a pod that uses the claims, each in its own entry.
func podOf(name, profile string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: profile,
			Containers:    []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}},
		},
	}
	for i, claim := range claims {
		entry := fmt.Sprintf("claim-%d", i)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimName: &claim})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: entry})
	}
	return pod
}
