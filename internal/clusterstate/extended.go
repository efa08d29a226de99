// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/extended"
)

// A pod that asks for extended resources which a class stands for has one more claim. The scheduler
// makes it when it has found devices, and names it in the pod's status.

// extendedClaim is nil if the pod asks for no such resource. Without a claim in the status it is the
// one that would be made.
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

// Waiting are the claims that pods will have for their extended resources, and that do not exist yet.
func (s *State) Waiting() []*resourceapi.ResourceClaim { return extended.Waiting(s.Pods, s.classOf) }

// HasClassFor reports whether a class stands for an extended resource.
func (s *State) HasClassFor(name corev1.ResourceName) bool { return s.classOf(name) != nil }

// classOf is the class that stands for an extended resource: of several the newest, and of those
// that are equally new the first by name, as in kube-scheduler.
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

// PendingOn are the claims that have no devices yet, for one node. What a node has of an extended
// resource without devices, as from a device plugin, the scheduler does not request there.
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
