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

// Two holds compete if both can't be kept. Within a scheduler, the hold of the lower priority breaks when a pod of a higher
// priority takes one of its devices or gets a hold on one. Two schedulers may begin competing holds of the same priority,
// because each reads the holds of the other from a watch. So all holds are ordered:
//
//   1. A hold precedes another if its pod has the higher priority, then if it began earlier, then if its pod has the lower UID.
//      The record of a hold has all three, so all schedulers agree.
//   2. If a scheduler finds a foreign hold that precedes its own, it breaks its own hold and evicts no more pods for it.
//   3. A scheduler never ends a foreign hold because of the order, since the other scheduler may not have received the preceding
//      hold yet. Until the record says that the foreign hold has ended, other pods can't get its devices.
//   4. If the hold of a pod precedes a foreign hold, the pod may take the devices of the foreign hold.

// precedes reports whether the hold precedes another one.
func (h *Hold) precedes(other *Hold) bool {
	return cmp.Or(
		cmp.Compare(corev1helpers.PodPriority(other.Pod), corev1helpers.PodPriority(h.Pod)),
		h.Began.Compare(other.Began),
		cmp.Compare(h.Pod.UID, other.Pod.UID),
	) < 0
}

// competes reports whether two holds exclude each other: they share a device, a victim, or a claim to free. Shares and partitions
// of devices exclude each other only through victims and claims.
func (h *Hold) competes(other *Hold) bool {
	return h.hasAny(wholeDevices(other.Devices())) || haveCommon(h.Victims, other.Victims) || haveCommon(h.Frees, other.Frees)
}

func haveCommon(a, b []types.UID) bool {
	return slices.ContainsFunc(a, func(uid types.UID) bool { return slices.Contains(b, uid) })
}

// brokenBy returns the pods whose holds break because of a new hold. If a foreign hold precedes the new one, the pod of the new
// hold is included.
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
			// The claims of a bound pod have their devices. The hold remains for late informers only.
			if !other.isEnding && other.precedes(&begun.Hold) && other.competes(&begun.Hold) {
				broken = append(broken, begun.Pod.UID)
			}
		case begun.restored:
			// The process that began the hold has broken other holds already.
		case corev1helpers.PodPriority(other.Pod) < corev1helpers.PodPriority(begun.Pod) && other.hasAny(devices):
			broken = append(broken, uid)
		}
	}
	return broken
}

// isBefore reports whether a hold reserves its devices against a pod. A hold of a lower priority does not, nor does a competing
// hold that the pod's own hold precedes.
func (h *Holds) isBefore(held *held, pod *v1.Pod) bool {
	if held.Pod.UID == pod.UID || corev1helpers.PodPriority(held.Pod) < corev1helpers.PodPriority(pod) {
		return false
	}
	own := h.byPod[pod.UID]
	return own == nil || !own.precedes(&held.Hold) || !own.competes(&held.Hold)
}

// Taken breaks holds of other pods on devices that a pod of this scheduler has got, or on claims that it uses now.
func (h *Holds) Taken(pod *v1.Pod, devices []structured.DeviceID, claims []types.UID) {
	h.endThose(Broken, func(held *held) bool {
		if held.Pod.UID == pod.UID {
			return false
		}
		rest := held.without(claims)
		return rest.hasAny(devices) || haveCommon(claims, held.Frees)
	})
}

// Allocated ends the holds on devices that a scheduler without the plugin has just allocated to a claim. priority is the highest
// priority of the pods that use the claim. Holds for pods of a lower priority end with [Broken], other holds end with [Lost].
// Claims of victims are ignored, because the watch may deliver their former allocation late.
func (h *Holds) Allocated(claim *resourceapi.ResourceClaim, priority int32) {
	devices := wholeDevices(claim.Status.Allocation.Devices.Results)
	has := func(held *held) bool {
		// A claim for extended resources is created after its pod has got devices, so no hold names it.
		isOwn := held.isFor(claim.UID) || metav1.IsControlledBy(claim, held.Pod)
		return !isOwn && !slices.Contains(held.Frees, claim.UID) && held.hasAny(devices)
	}
	outranks := func(held *held) bool { return priority > corev1helpers.PodPriority(held.Pod) }
	h.endThose(Broken, func(held *held) bool { return has(held) && outranks(held) })
	h.endThose(Lost, func(held *held) bool { return has(held) && !outranks(held) })
}

// Unused is called after a claim has lost a user. It activates pods that wait for the claim to be freed.
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

// endThose ends holds of this scheduler.
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
