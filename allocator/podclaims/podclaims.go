// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podclaims checks the claims of a pod before the search for devices. The scheduler's plugin and kubectl celset call
// the same functions, so that both refuse a pod for the same reasons:
//
//  1. [Checker.Find]: a claim is missing, is being deleted, was made for another pod, or has the maximum number of consumers.
//  2. [Bounded] and [Checker.Classes]: an unallocated claim exceeds limits or names a DeviceClass that does not exist.
//  3. [Checker.Attached]: the devices of a claim could not be attached to the node (KEP-5007).
//
// Upstream's plugin makes the same checks in its PreFilter and Filter, except for the number of consumers. With upstream's
// plugin, the API server rejects each attempt to bind a pod whose claim has too many consumers.
package podclaims

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
)

// A Checker holds the scheduler's settings that affect the checks.
type Checker struct {
	// WorkloadClaims is true if the feature gate DRAWorkloadResourceClaims is on. Claims may then belong to a PodGroup.
	WorkloadClaims bool
	// PrioritizedList is true if the feature gate DRAPrioritizedList is on.
	PrioritizedList bool
	// BindingConditions is true if the feature gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus are on.
	BindingConditions bool
	// BindingTimeout is the maximum time until the devices of a claim must be attached.
	BindingTimeout time.Duration
}

// A Getter returns the claim with the given namespace and name.
type Getter func(namespace, name string) (*resourceapi.ResourceClaim, error)

// Find returns the claims of a pod, in the order of its specification. It returns an error for the first claim that the pod
// can't use, regardless of devices. The error wraps [resourceclaim.ErrClaimNotFound] if the claim is not yet made from its
// template.
func (c *Checker) Find(pod *v1.Pod, get Getter) ([]*resourceapi.ResourceClaim, error) {
	var claims []*resourceapi.ResourceClaim
	for i := range pod.Spec.ResourceClaims {
		claim, err := c.Of(pod, &pod.Spec.ResourceClaims[i], get)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// Of returns the claim for an entry of spec.resourceClaims, or nil if it needs no claim. It fails like [Checker.Find].
func (c *Checker) Of(pod *v1.Pod, entry *v1.PodResourceClaim, get Getter) (*resourceapi.ResourceClaim, error) {
	name, isOwned, err := resourceclaim.Name(pod, entry)
	if err != nil || name == nil {
		return nil, err
	}
	claim, err := get(pod.Namespace, *name)
	if err != nil {
		return nil, err
	}
	return claim, c.usable(pod, claim, isOwned)
}

// usable returns an error if a pod can't use a claim. It returns nil for a pod that has a node, because this pod already uses
// the claim. isOwned is true if the claim was made from a template of the pod.
func (c *Checker) usable(pod *v1.Pod, claim *resourceapi.ResourceClaim, isOwned bool) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	if claim.DeletionTimestamp != nil {
		return Deleted(claim)
	}
	if isOwned {
		if err := resourceclaim.IsForPod(pod, claim, c.WorkloadClaims); err != nil {
			return withOwner(err, claim)
		}
	}
	consumers := len(claim.Status.ReservedFor)
	if consumers >= resourceapi.ResourceClaimReservedForMaxSize && !resourceclaim.IsReservedForPod(pod, claim, c.WorkloadClaims) {
		return fmt.Errorf("claim %s has %d consumers in status.reservedFor, and the API allows no more: wait until one of them ends, or use another claim",
			klog.KObj(claim), consumers)
	}
	return nil
}

// Deleted returns the error for a claim that is being deleted.
func Deleted(claim *resourceapi.ResourceClaim) error {
	return fmt.Errorf("claim %s is being deleted%s: create the claim again after it is deleted", klog.KObj(claim), heldBy(claim))
}

// heldBy returns the part of a message that says why the claim still exists.
func heldBy(claim *resourceapi.ResourceClaim) string {
	if n := len(claim.Status.ReservedFor); n > 0 {
		return fmt.Sprintf(", but is still in use by %d consumers in status.reservedFor", n)
	}
	return ""
}

// withOwner adds the owner of the claim to an error.
func withOwner(err error, claim *resourceapi.ResourceClaim) error {
	if owner := metav1.GetControllerOf(claim); owner != nil {
		return fmt.Errorf("%w: the claim was created for %s %s", err, owner.Kind, owner.Name)
	}
	return err
}

// onlyConsumer reports whether no pod other than the given one uses the claim. The scheduler deallocates only such a claim.
func onlyConsumer(claim *resourceapi.ResourceClaim, pod types.UID) bool {
	reserved := claim.Status.ReservedFor
	return len(reserved) == 0 || len(reserved) == 1 && reserved[0].UID == pod
}
