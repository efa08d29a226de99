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

// Release determines which claims give back their devices when pods are deleted.
type Release struct {
	// Claim returns the claim with this name, or nil if it does not exist.
	Claim func(namespace, name string) *resourceapi.ResourceClaim
	// Pending returns the allocation of a claim that the scheduler has decided but not yet written, or nil. Pending may be nil.
	Pending func(claim types.UID) *resourceapi.AllocationResult
	// Own holds the claims of the preempting pod. They keep their devices.
	Own sets.Set[types.UID]
	// Held holds devices reserved for other pods. The preempting pod does not get them, even if their owners are removed.
	Held sets.Set[structured.DeviceID]
	// Users returns the users of the claims on a node: it maps the UID of a claim to the UIDs of pods. It includes pods during
	// their binding, which a claim's reservedFor does not list yet. Users may be nil.
	Users func(node string) map[types.UID][]types.UID
	// Exists reports whether the user of a claim exists. The claim controller soon removes users that don't exist from
	// reservedFor. If Exists is nil, all users count as existing.
	Exists func(namespace string, user resourceapi.ResourceClaimConsumerReference) bool
}

// Claims returns the claims that give back devices when the pods in gone are deleted. Each claim contains only the devices that
// it gives back and that the preempting pod can get.
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

// givenBack returns the claim with the devices that it gives back when the pods in gone are deleted, or nil.
//
// The claim controller deallocates a claim when the last pod in its reservedFor is gone. It removes a PodGroup from reservedFor
// only when the PodGroup is deleted, which evictions don't do. It never removes other kinds of users (syncClaim in
// k8s.io/kubernetes/pkg/controller/resourceclaim). A claim without users keeps its devices.
func (r *Release) givenBack(claim *resourceapi.ResourceClaim, pod *v1.Pod, gone map[types.UID]*v1.Pod) *resourceapi.ResourceClaim {
	if claim.Status.Allocation == nil {
		// If a pod is evicted during its binding, the scheduler drops the unwritten allocation of the pod's own claim.
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

// withoutHeld returns the claim without the devices that are reserved for other pods.
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

// Has returns the devices that are allocated to the claims of a pod, without devices that other claims can have as well.
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

// IsPod reports whether the user of a claim is a pod.
func IsPod(user resourceapi.ResourceClaimConsumerReference) bool {
	return user.APIGroup == "" && user.Resource == "pods"
}

// UsesDevices reports whether a pod may have claims with devices.
func UsesDevices(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// ClaimsOf returns those claims of a pod that exist.
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

// DevicesOf returns the devices in results that no other claim can have at the same time.
func DevicesOf(results []resourceapi.DeviceRequestAllocationResult) []structured.DeviceID {
	var ids []structured.DeviceID
	for i := range results {
		if r := &results[i]; r.ShareID == nil && !ptr.Deref(r.AdminAccess, false) {
			ids = append(ids, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
	return ids
}
