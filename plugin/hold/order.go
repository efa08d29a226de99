// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Two holds compete if both can't be kept. Within a scheduler, a hold breaks when a pod of a higher priority gets one of its
// devices or a hold on one. Two schedulers may begin competing holds of the same priority, because each scheduler reads the
// other's holds from a watch. So all holds are ordered:
//
//   1. A hold precedes another hold if its pod has the higher priority. Between equal priorities, the earlier hold precedes,
//      then the hold whose pod has the lower UID. The record of a hold has all three values, so all schedulers agree.
//   2. If a scheduler finds a foreign hold that precedes one of its own competing holds, it breaks its own hold and evicts no
//      more pods for it.
//   3. A scheduler never ends a foreign hold because of the order, since the other scheduler may not have received the
//      preceding hold yet. Until the record says that the foreign hold has ended, pods of this scheduler can't get its devices.
//   4. If a pod's own hold precedes a competing foreign hold, the pod may get the devices of the foreign hold.

// precedes reports whether h is before other in the order described above.
func (h *Hold) precedes(other *Hold) bool {
	return cmp.Or(
		cmp.Compare(corev1helpers.PodPriority(other.Pod), corev1helpers.PodPriority(h.Pod)),
		h.Began.Compare(other.Began),
		cmp.Compare(h.Pod.UID, other.Pod.UID),
	) < 0
}

// competes reports whether both holds can't be kept: they share a whole device, a victim, or a claim to free. Holds on shares
// or partitions of one device compete only if they have a victim or a claim in common.
func (h *Hold) competes(other *Hold) bool {
	return h.hasAny(wholeDevices(other.Devices())) || haveCommon(h.Victims, other.Victims) || haveCommon(h.Frees, other.Frees)
}

func haveCommon(a, b []types.UID) bool {
	return slices.ContainsFunc(a, func(uid types.UID) bool { return slices.Contains(b, uid) })
}

// brokenBy returns the pods whose holds break because a hold has begun. If a foreign hold precedes the new hold, the new hold's
// pod is included.
func (h *Holds) brokenBy(begun *held) (broken []types.UID) {
	devices := wholeDevices(begun.Devices())
	for uid, other := range h.byPod {
		switch {
		case uid == begun.Pod.UID, begun.Foreign && other.Foreign:
		case begun.Foreign:
			if begun.precedes(&other.Hold) && begun.competes(&other.Hold) {
				broken = append(broken, uid)
			}
		case other.Foreign:
			// An ending foreign hold belongs to a bound pod whose claims are allocated. The hold remains only because of late informers.
			if !other.isEnding && other.precedes(&begun.Hold) && other.competes(&begun.Hold) {
				broken = append(broken, begun.Pod.UID)
			}
		case begun.restored:
			// The process that began the restored hold has already broken other holds.
		case corev1helpers.PodPriority(other.Pod) < corev1helpers.PodPriority(begun.Pod) && other.hasAny(devices):
			broken = append(broken, uid)
		}
	}
	return broken
}

// isBefore reports whether the pod must not get the held devices. It may get them if its priority is higher, or if its own hold
// competes with held and precedes it.
func (h *Holds) isBefore(held *held, pod *v1.Pod) bool {
	if held.Pod.UID == pod.UID || corev1helpers.PodPriority(held.Pod) < corev1helpers.PodPriority(pod) {
		return false
	}
	own := h.byPod[pod.UID]
	return own == nil || !own.precedes(&held.Hold) || !own.competes(&held.Hold)
}

// Taken breaks other pods' holds after a pod of this scheduler has got the given devices and uses the given claims.
func (h *Holds) Taken(pod *v1.Pod, devices []structured.DeviceID, claims []types.UID) {
	h.endThose(Broken, func(held *held) bool {
		if held.Pod.UID == pod.UID {
			return false
		}
		rest := held.without(claims)
		return rest.hasAny(devices) || haveCommon(claims, held.Frees)
	})
}

// Allocated ends the holds on devices that a scheduler without the plugin has just allocated to claim. priority is the highest
// priority of the pods that use the claim. Holds of lower-priority pods end with [Broken], other holds end with [Lost]. A
// victim's claim ends no hold, because the watch may deliver its former allocation late.
func (h *Holds) Allocated(claim *resourceapi.ResourceClaim, priority int32) {
	devices := wholeDevices(claim.Status.Allocation.Devices.Results)
	has := func(held *held) bool {
		// A claim for extended resources is created after devices were found for its pod, so no hold has its UID.
		isOwn := held.isFor(claim.UID) || metav1.IsControlledBy(claim, held.Pod)
		return !isOwn && !slices.Contains(held.Frees, claim.UID) && held.hasAny(devices)
	}
	outranks := func(held *held) bool { return priority > corev1helpers.PodPriority(held.Pod) }
	h.endThose(Broken, func(held *held) bool { return has(held) && outranks(held) })
	h.endThose(Lost, func(held *held) bool { return has(held) && !outranks(held) })
}

// Unused is called after a claim has lost a user. It activates the pods that the claim must be freed for.
func (h *Holds) Unused(claim types.UID) {
	var retries []func()
	h.mutex.Lock()
	for _, held := range h.byPod {
		if !held.Foreign && held.Retry != nil && slices.Contains(held.Frees, claim) {
			retries = append(retries, held.Retry)
		}
	}
	h.mutex.Unlock()
	for _, retry := range retries {
		retry()
	}
}

// endThose ends each hold of this scheduler if isOver returns true for the hold.
func (h *Holds) endThose(how End, isOver func(*held) bool) {
	var over []types.UID
	h.mutex.Lock()
	for uid, held := range h.byPod {
		if !held.Foreign && isOver(held) {
			over = append(over, uid)
		}
	}
	h.mutex.Unlock()
	for _, uid := range over {
		h.End(uid, how)
	}
}
