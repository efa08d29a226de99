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

// Holds that can't both be kept compete. In one scheduler that happens when a pod of a higher priority takes a device or
// gets a hold on it: then the hold of the lower priority is broken. Two schedulers may begin competing holds of the same
// priority, because each of them reads the holds of the other one from a watch. So all holds have an order:
//
//  1. A hold goes before another one if its pod has the higher priority. Of equal priorities the hold that began first goes
//     before the other one, and at the same time that of the lower UID. The record of a hold has all of this, so that all
//     schedulers agree.
//  2. A scheduler that sees a foreign hold before its own one breaks its own hold. It evicts nobody any more for its pod.
//  3. A scheduler never ends a foreign hold for this reason, because the other scheduler may not have seen yet what breaks
//     it. Until the record says that the hold has ended, other pods are kept from its devices.
//  4. The pod whose hold goes before a foreign hold is not kept from the devices: the foreign hold yields.

// precedes reports whether the hold goes before another one.
func (h *Hold) precedes(other *Hold) bool {
	return cmp.Or(
		cmp.Compare(corev1helpers.PodPriority(other.Pod), corev1helpers.PodPriority(h.Pod)),
		h.Begun.Compare(other.Begun),
		cmp.Compare(h.Pod.UID, other.Pod.UID),
	) < 0
}

// competes reports whether two holds can't both be kept: they are about the same device, or they wait for the same victim
// or claim. The latter decides for shares and partitions.
func (h *Hold) competes(other *Hold) bool {
	return h.hasAny(wholeDevices(other.Devices())) || haveCommon(h.Victims, other.Victims) || haveCommon(h.Frees, other.Frees)
}

func haveCommon(a, b []types.UID) bool {
	return slices.ContainsFunc(a, func(uid types.UID) bool { return slices.Contains(b, uid) })
}

// brokenBy returns the pods whose holds a new hold breaks. The pod of the new hold is among them if a foreign hold goes
// before the new one.
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
			// The claims of a pod that was bound have their devices: the hold is kept for late informers only.
			if !other.isEnding && other.precedes(&begun.Hold) && other.competes(&begun.Hold) {
				broken = append(broken, begun.Pod.UID)
			}
		case begun.restored:
			// The process that began the hold has done that.
		case corev1helpers.PodPriority(other.Pod) < corev1helpers.PodPriority(begun.Pod) && other.hasAny(devices):
			broken = append(broken, uid)
		}
	}
	return broken
}

// isBefore reports whether a hold keeps its devices from a pod. A hold of a lower priority doesn't, and one that competes
// with the hold of the pod only if it goes before that.
func (h *Holds) isBefore(held *held, pod *v1.Pod) bool {
	if held.Pod.UID == pod.UID || corev1helpers.PodPriority(held.Pod) < corev1helpers.PodPriority(pod) {
		return false
	}
	own := h.byPod[pod.UID]
	return own == nil || !own.precedes(&held.Hold) || !own.competes(&held.Hold)
}

// Taken breaks the holds of other pods on devices that a pod of this scheduler has got, or on claims that it uses now.
func (h *Holds) Taken(pod *v1.Pod, devices []structured.DeviceID, claims []types.UID) {
	h.endThose(Broken, func(held *held) bool {
		if held.Pod.UID == pod.UID {
			return false
		}
		rest := held.without(claims)
		return rest.hasAny(devices) || haveCommon(claims, held.Frees)
	})
}

// Allocated ends the holds on devices that a scheduler without the plugin has just allocated to a claim. priority is the
// highest priority of the pods that use the claim: a hold for a pod of a lower priority is broken, other holds are lost.
// Claims of victims are left out, because the watch may be late with the allocation that the victim had.
func (h *Holds) Allocated(claim *resourceapi.ResourceClaim, priority int32) {
	devices := wholeDevices(claim.Status.Allocation.Devices.Results)
	has := func(held *held) bool {
		// The claim for extended resources is made when the pod has got its devices, so no hold names it.
		isOwn := held.isFor(claim.UID) || metav1.IsControlledBy(claim, held.Pod)
		return !isOwn && !slices.Contains(held.Frees, claim.UID) && held.hasAny(devices)
	}
	outranks := func(held *held) bool { return priority > corev1helpers.PodPriority(held.Pod) }
	h.endThose(Broken, func(held *held) bool { return has(held) && outranks(held) })
	h.endThose(Lost, func(held *held) bool { return has(held) && !outranks(held) })
}

// Unused is called when a claim has lost a user. It has pods tried again that wait for the claim to be freed.
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
