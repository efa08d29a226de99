// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/extended"
)

// A pod that requests extended resources of a DeviceClass has an additional claim. The scheduler creates this claim once it has
// found devices, and writes its name into the pod's status.

// extendedClaim returns the claim that the pod's status names, or the claim that the scheduler would create. It returns nil if
// the pod requests no extended resource of a class.
func (s *State) extendedClaim(pod *corev1.Pod) (*resourceapi.ResourceClaim, error) {
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		claim := find(s.Claims, pod.Namespace, status.ResourceClaimName)
		if claim == nil {
			return nil, fmt.Errorf("pod %s/%s: there is no ResourceClaim %q", pod.Namespace, pod.Name, status.ResourceClaimName)
		}
		return claim, nil
	}
	return extended.Claim(pod, s.classOf), nil
}

// Waiting returns the claims for extended resources of pods that the scheduler has not created yet.
func (s *State) Waiting() []*resourceapi.ResourceClaim { return extended.Waiting(s.Pods, s.classOf) }

// HasClassFor reports whether a class provides an extended resource.
func (s *State) HasClassFor(name corev1.ResourceName) bool { return s.classOf(name) != nil }

// classOf returns the class that provides an extended resource, or nil. If there are several, it returns the newest, and among
// equally old classes the first by name, as kube-scheduler does.
func (s *State) classOf(name corev1.ResourceName) *resourceapi.DeviceClass {
	var result *resourceapi.DeviceClass
	for _, class := range s.Objects.Classes {
		if string(name) == resourceapi.ResourceDeviceClassPrefix+class.Name {
			return class
		}
		if class.Spec.ExtendedResourceName == nil || *class.Spec.ExtendedResourceName != string(name) {
			continue
		}
		if result == nil || class.CreationTimestamp.After(result.CreationTimestamp.Time) {
			result = class
		}
	}
	return result
}

// PendingOn returns the claims of the subject that have no devices yet, as they would be for one node. If a device plugin on
// the node provides an extended resource, the claim for extended resources omits this resource.
func (s *State) PendingOn(subject *Subject, node *corev1.Node) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, claim := range subject.Pending() {
		if claim.Name == extended.ClaimName {
			claim = extended.Claim(subject.Pod, func(name corev1.ResourceName) *resourceapi.DeviceClass {
				if amount := node.Status.Allocatable[name]; amount.Sign() > 0 {
					return nil
				}
				return s.classOf(name)
			})
		}
		if claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims
}
