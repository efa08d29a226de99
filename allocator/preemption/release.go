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

// Release knows which claims give back their devices when pods are gone.
type Release struct {
	// Claim finds a claim, nil if there is none.
	Claim func(namespace, name string) *resourceapi.ResourceClaim
	// Pending is what is just being allocated to a claim, nil if nothing is. Whoever does not know
	// leaves it out.
	Pending func(claim types.UID) *resourceapi.AllocationResult
	// Own are the claims of the pod for which others would go. What they have they keep.
	Own sets.Set[types.UID]
	// Held are the devices that are held for others. Whoever has them now, the pod does not get them.
	Held sets.Set[structured.DeviceID]
	// Users returns the UIDs of the pods on a node that use each claim. It adds pods that are still being bound, for which
	// the claim isn't reserved yet. It may be nil.
	Users func(node string) map[types.UID][]types.UID
	// Exists reports whether the user of a claim exists. The claim controller removes the reservations of other users soon.
	// If it is nil all users exist.
	Exists func(namespace string, user resourceapi.ResourceClaimConsumerReference) bool
}

// Claims are those that give back their devices when the pods are gone, with what they give back. The
// pods are by UID.
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

// givenBack is the claim with what it gives back, nil if it keeps it.
//
// The claim controller takes an allocation away when the last pod for which the claim is reserved is
// gone, whoever made the claim. A reservation for a PodGroup it takes away with the PodGroup only,
// which no eviction deletes; and one for anything else never (syncClaim in
// k8s.io/kubernetes/pkg/controller/resourceclaim). A claim that nobody uses keeps its devices.
func (r *Release) givenBack(claim *resourceapi.ResourceClaim, pod *v1.Pod, gone map[types.UID]*v1.Pod) *resourceapi.ResourceClaim {
	if claim.Status.Allocation == nil {
		// Evicting a pod that is being bound takes back what is just being allocated for it alone.
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

// withoutHeld is the claim as if it did not have what is held for others.
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

// Has are the devices that nobody else can have as long as a pod has its claims.
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

// IsPod tells whether a claim is reserved for a pod.
func IsPod(user resourceapi.ResourceClaimConsumerReference) bool {
	return user.APIGroup == "" && user.Resource == "pods"
}

// UsesDevices tells whether a pod may have devices of claims.
func UsesDevices(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// ClaimsOf are the claims of a pod that can be found.
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

// DevicesOf are the devices of results that nobody else can have.
func DevicesOf(results []resourceapi.DeviceRequestAllocationResult) []structured.DeviceID {
	var ids []structured.DeviceID
	for i := range results {
		if r := &results[i]; r.ShareID == nil && !ptr.Deref(r.AdminAccess, false) {
			ids = append(ids, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
	return ids
}
