// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Release computes which claims give back their devices when pods are gone.
type Release struct {
	// Claim returns a claim, or nil if it does not exist.
	Claim func(namespace, name string) *resourceapi.ResourceClaim
	// Pending returns the allocation in progress for a claim, or nil. It is optional.
	Pending func(claim types.UID) *resourceapi.AllocationResult
	// Own are the claims of the preempting pod. They keep their devices.
	Own sets.Set[types.UID]
	// Held are the devices reserved for other pods. The preempting pod does not get them, even if their owners are removed.
	Held sets.Set[structured.DeviceID]
	// Users maps the claims of the pods on a node to the UIDs of their users. It includes pods during their binding, which the
	// reservations of a claim do not list yet. Users may be nil.
	Users func(node string) map[types.UID][]types.UID
	// Exists reports whether the user of a claim exists. The claim controller soon removes the reservations of other users. If it is
	// nil, all users exist.
	Exists func(namespace string, user resourceapi.ResourceClaimConsumerReference) bool
}

// Claims returns the claims that give back devices when the pods in gone are deleted, with only the devices given back.
func (r *Release) Claims(gone map[types.UID]*v1.Pod) []*resourceapi.ResourceClaim {
	var released []*resourceapi.ResourceClaim
	seen := sets.New[types.UID]()
	for _, pod := range gone {
		for _, claim := range ClaimsOf(pod, r.Claim) {
			if seen.Has(claim.UID) || r.Own.Has(claim.UID) {
				continue
			}
			seen.Insert(claim.UID)
			if has := r.givenBack(claim, pod, gone); has != nil {
				released = append(released, r.withoutHeld(has))
			}
		}
	}
	return released
}

// givenBack returns the claim with the devices that it gives back, or nil.
//
// The claim controller deallocates a claim when the last pod in its reservations is gone. It removes a reservation for a PodGroup
// only with the PodGroup, which evictions don't delete, and never removes other reservations (syncClaim in
// k8s.io/kubernetes/pkg/controller/resourceclaim). A claim without users keeps its devices.
func (r *Release) givenBack(claim *resourceapi.ResourceClaim, pod *v1.Pod, gone map[types.UID]*v1.Pod) *resourceapi.ResourceClaim {
	if claim.Status.Allocation == nil {
		// Evicting a pod during its binding cancels the allocation in progress for its own claim.
		pending := r.pending(claim)
		if pending == nil || pod.Spec.SchedulingGroup != nil || !metav1.IsControlledBy(claim, pod) {
			return nil
		}
		claim = claim.DeepCopy()
		claim.Status.Allocation = pending
		return claim
	}
	if len(claim.Status.ReservedFor) == 0 || !slices.Contains(claim.Finalizers, resourceapi.Finalizer) {
		return nil
	}
	for _, user := range claim.Status.ReservedFor {
		if _, isGone := gone[user.UID]; (!isGone || !IsPod(user)) && r.exists(claim.Namespace, user) {
			return nil
		}
	}
	if r.Users != nil {
		for _, user := range r.Users(pod.Spec.NodeName)[claim.UID] {
			if _, isGone := gone[user]; !isGone {
				return nil
			}
		}
	}
	return claim
}

func (r *Release) exists(namespace string, user resourceapi.ResourceClaimConsumerReference) bool {
	return r.Exists == nil || r.Exists(namespace, user)
}

func (r *Release) pending(claim *resourceapi.ResourceClaim) *resourceapi.AllocationResult {
	if r.Pending == nil {
		return nil
	}
	return r.Pending(claim.UID)
}

// withoutHeld returns the claim without devices reserved for other pods.
func (r *Release) withoutHeld(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	if !r.Held.HasAny(DevicesOf(claim.Status.Allocation.Devices.Results)...) {
		return claim
	}
	claim = claim.DeepCopy()
	results := &claim.Status.Allocation.Devices.Results
	*results = slices.DeleteFunc(*results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return r.Held.HasAny(DevicesOf([]resourceapi.DeviceRequestAllocationResult{result})...)
	})
	return claim
}

// Has returns the devices that a pod reserves through its claims.
func (r *Release) Has(pod *v1.Pod) []structured.DeviceID {
	var ids []structured.DeviceID
	for _, claim := range ClaimsOf(pod, r.Claim) {
		allocation := claim.Status.Allocation
		if allocation == nil {
			allocation = r.pending(claim)
		}
		if allocation != nil {
			ids = append(ids, DevicesOf(allocation.Devices.Results)...)
		}
	}
	return ids
}

// IsPod reports whether a claim is reserved for a pod.
func IsPod(user resourceapi.ResourceClaimConsumerReference) bool {
	return user.APIGroup == "" && user.Resource == "pods"
}

// UsesDevices reports whether a pod may have devices of claims.
func UsesDevices(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// ClaimsOf returns the claims of a pod that exist.
func ClaimsOf(pod *v1.Pod, find func(namespace, name string) *resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	add := func(name string) {
		if claim := find(pod.Namespace, name); claim != nil {
			claims = append(claims, claim)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			add(*name)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		add(extended.ResourceClaimName)
	}
	return claims
}

// DevicesOf returns the devices in results that no other claim can have.
func DevicesOf(results []resourceapi.DeviceRequestAllocationResult) []structured.DeviceID {
	var ids []structured.DeviceID
	for i := range results {
		if r := &results[i]; r.ShareID == nil && !ptr.Deref(r.AdminAccess, false) {
			ids = append(ids, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
	return ids
}
