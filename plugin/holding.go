// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/plugin/hold"
)

// A device can change hands in three ways, and holds are checked in each of them, in all profiles:
//
//  1. A claim is allocated. Held devices count as in use from the beginning of the scheduling cycle, for upstream's
//     allocator and for ours, and in every trial. So filters need not know of holds.
//  2. A claim that has devices is reserved for one more pod. PreFilter refuses the pod if the claim is to be freed for
//     another pod, and PreBind checks it again.
//  3. A pod of a higher priority takes devices. Reserve breaks the hold then.

// maxNamedNodes is the number of nodes that a message names.
const maxNamedNodes = 5

// heldFrom returns the devices that a pod must not get because they are held for others. Devices for a claim that is
// allocated by now are not held any more: given has the devices of such claims. The scheduler adds an allocation of another
// scheduler to the devices in use a moment after it has the claim, so given must count as in use, too.
func (pl *DynamicResourcesCEL) heldFrom(pod *v1.Pod, c *podClaims) (held []hold.Hold, given []resourceapi.DeviceRequestAllocationResult) {
	if pl.holds == nil {
		return nil, nil
	}
	held = pl.holds.From(pod, c.uids(), pl.activate)
	for i := range held {
		held[i].Claims = slices.DeleteFunc(held[i].Claims, func(claim hold.Claim) bool {
			has := pl.devicesOf(held[i].Pod.Namespace, &claim)
			if has != nil {
				given = append(given, has.Devices.Results...)
			}
			return has != nil
		})
	}
	return slices.DeleteFunc(held, func(held hold.Hold) bool { return len(held.Claims) == 0 }), given
}

// devicesOf returns what a claim has, for which devices are held, or is just getting. It is nil if the claim has no devices.
func (pl *DynamicResourcesCEL) devicesOf(namespace string, held *hold.Claim) *resourceapi.AllocationResult {
	if held.UID == "" {
		return nil
	}
	claim := pl.claim(namespace, held.Name)
	if claim == nil || claim.UID != held.UID {
		return nil
	}
	return pl.allocationOf(claim)
}

// allocationOf returns what a claim has or is just getting, nil if that is nothing.
func (pl *DynamicResourcesCEL) allocationOf(claim *resourceapi.ResourceClaim) *resourceapi.AllocationResult {
	if claim.Status.Allocation != nil {
		return claim.Status.Allocation
	}
	return pl.claims.ResourceClaims().GetPendingAllocation(claim.UID)
}

// keptFrom returns devices that a pod must not get, beside those that claims are known to have: the held ones, those given to
// claims for which they were held, and those that the pending writes of others may have given to their claims.
func (pl *DynamicResourcesCEL) keptFrom(pod *v1.Pod, c *podClaims, held []hold.Hold, given []resourceapi.DeviceRequestAllocationResult) []resourceapi.DeviceRequestAllocationResult {
	kept := slices.Clone(given)
	if pl.writes != nil {
		kept = append(kept, pl.writes.InUse(pod, c.own(), pl.activate)...)
	}
	for i := range held {
		kept = append(kept, held[i].Devices()...)
	}
	return kept
}

// keptTexts returns what was kept from a pod that fits nowhere and might have got it.
func (pl *DynamicResourcesCEL) keptTexts(pod *v1.Pod, c *podClaims, nodes fwk.NodeToStatusReader) (texts []string) {
	var named []string
	others, devices := map[string]bool{}, 0
	held, _ := pl.heldFrom(pod, c)
	for _, held := range held {
		devices += len(held.Devices())
		// The pod could use a node that lacks nothing but devices. Other nodes may be those of other tenants.
		if nodes != nil && nodes.Get(held.Node).Plugin() == pl.Name() {
			named = append(named, held.Node)
		} else {
			others[held.Node] = true
		}
	}
	if devices > 0 {
		texts = append(texts, fmt.Sprintf("%d devices of %s are held for pods of the same or a higher priority for which others were evicted", devices, nodeNames(named, len(others))))
	}
	if pl.writes != nil {
		if pending := len(pl.writes.InUse(pod, c.own(), pl.activate)); pending > 0 {
			texts = append(texts, fmt.Sprintf("%d devices are kept until the API server or the watch confirms their allocations", pending))
		}
	}
	return texts
}

// nodeNames names some nodes and counts the others.
func nodeNames(named []string, others int) string {
	slices.Sort(named)
	named = slices.Compact(named)
	if more := len(named) - maxNamedNodes; more > 0 {
		named, others = named[:maxNamedNodes], others+more
	}
	switch {
	case len(named) == 0:
		return fmt.Sprintf("%d nodes", others)
	case others == 0:
		return strings.Join(named, ", ")
	default:
		return fmt.Sprintf("%s and %d other nodes", strings.Join(named, ", "), others)
	}
}

// checkJoining refuses a pod that uses an allocated claim whose devices are held for another pod. Such a pod would keep
// the claim from being freed.
func (pl *DynamicResourcesCEL) checkJoining(pod *v1.Pod, c *podClaims) *fwk.Status {
	if pl.holds == nil || len(c.allocated) == 0 {
		return nil
	}
	if claim := pl.holds.Refuses(pod, c.allocated, pl.activate); claim != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf(
			"resourceclaim %s can't be used: its devices are held for a pod of the same or a higher priority for which others were evicted", klog.KObj(claim)))
	}
	return nil
}

// taken breaks the holds on devices and claims that a pod has just got.
func (pl *DynamicResourcesCEL) taken(pod *v1.Pod) {
	if pl.holds == nil {
		return
	}
	var devices []structured.DeviceID
	var claims []types.UID
	for _, claim := range pl.claimsOf(pod) {
		claims = append(claims, claim.UID)
		if pending := pl.claims.ResourceClaims().GetPendingAllocation(claim.UID); pending != nil {
			devices = append(devices, preemption.DevicesOf(pending.Devices.Results)...)
		}
	}
	pl.holds.Taken(pod, devices, claims)
}

// activateHolder has a pod tried at once when the claims are free whose devices are held for it. Upstream has it tried
// when a claim is deallocated, after its back-off.
func (pl *DynamicResourcesCEL) activateHolder(pod *v1.Pod) {
	if pl.holds == nil {
		return
	}
	held, ok := pl.holds.Of(pod.UID)
	if !ok {
		return
	}
	// The caller has a lock of the queue.
	go func() {
		if !pl.useOf(&held).freeing {
			pl.activate(held.Pod)
		}
	}()
}

// freedBy returns the claims that give back their devices when the victims of a hold have gone.
func (pl *DynamicResourcesCEL) freedBy(held *hold.Hold) (claims []*resourceapi.ResourceClaim) {
	for _, indexed := range foundBy[*resourceapi.ResourceClaim](pl.holds.claimIndex, held.Frees) {
		// The scheduler may know a later version than the watch.
		if claim := pl.claim(indexed.Namespace, indexed.Name); claim != nil && claim.UID == indexed.UID {
			claims = append(claims, claim)
		}
	}
	return claims
}

// use is how the claims are used that are to be freed for a hold.
type use struct {
	// freeing is set if a claim is still to be freed.
	freeing bool
	// other names a user that is no pod, "" if there is none.
	other string
	// pods are users that are neither victims of the hold, nor have ended, nor are ending.
	pods []*v1.Pod
}

// useOf returns how the claims are used that are to be freed for a hold.
func (pl *DynamicResourcesCEL) useOf(held *hold.Hold) (of use) {
	for _, claim := range pl.freedBy(held) {
		if pl.allocationOf(claim) == nil {
			continue
		}
		of.freeing = true
		for _, user := range claim.Status.ReservedFor {
			if !preemption.IsPod(user) {
				of.other = fmt.Sprintf("%s %s", user.Resource, klog.KRef(claim.Namespace, user.Name))
				continue
			}
			pod, err := pl.holds.pods.Pods(claim.Namespace).Get(user.Name)
			if err != nil || pod.UID != user.UID || slices.Contains(held.Victims, pod.UID) || slices.Contains(of.pods, pod) {
				continue
			}
			if how, over := hold.IsOver(pod, ""); !over || how != hold.Deleted {
				of.pods = append(of.pods, pod)
			}
		}
	}
	return of
}

// user names a user that keeps the claims, "" if there is none.
func (u *use) user() string {
	switch {
	case u.other != "":
		return u.other + " has some of them"
	case len(u.pods) > 0:
		return fmt.Sprintf("pod %s has some of them", klog.KObj(u.pods[0]))
	default:
		return ""
	}
}

// isHigher reports whether a user has a higher priority than the pod of the hold.
func (u *use) isHigher(held *hold.Hold) bool {
	return slices.ContainsFunc(u.pods, func(pod *v1.Pod) bool { return corev1helpers.PodPriority(pod) > corev1helpers.PodPriority(held.Pod) })
}

// joined returns the users if all of them can be evicted for the hold, too. This scheduler lets no pod of the same or a lower
// priority use a claim that is to be freed. Pods with a nodeName, and pods of schedulers without the plugin, do it all the
// same.
func (u *use) joined(held *hold.Hold) (uids []types.UID) {
	for _, pod := range u.pods {
		if pod.Spec.NodeName != held.Node || corev1helpers.PodPriority(pod) >= corev1helpers.PodPriority(held.Pod) {
			return nil
		}
		uids = append(uids, pod.UID)
	}
	if u.other != "" {
		return nil
	}
	return uids
}

// queueHolder wraps upstream's hint about claims.
func (pl *DynamicResourcesCEL) queueHolder(upstream fwk.QueueingHintFn) fwk.QueueingHintFn {
	return func(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
		hint, err := upstream(logger, pod, oldObj, newObj)
		if hint != fwk.Queue || !freesDevices(oldObj, newObj) {
			return hint, err
		}
		if err == nil && !pl.mayUse(pod, oldObj.(*resourceapi.ResourceClaim)) {
			return fwk.QueueSkip, nil
		}
		pl.activateHolder(pod)
		return hint, err
	}
}

// mayUse reports whether the freed devices of a claim may help a pod. They don't if the selectors of the pod's claims
// exclude their drivers. Otherwise pods that come and go would have the waiting pods of other tenants tried in vain, which
// uses up the share of those tenants. It is called while the scheduling queue is locked, so it only looks up.
func (pl *DynamicResourcesCEL) mayUse(pod *v1.Pod, freed *resourceapi.ResourceClaim) bool {
	if pl.preparing == nil || freed.Status.Allocation == nil || pl.wantsExtended(pod) {
		return true
	}
	c := pl.resolve(pod)
	if c.err != nil || len(c.unallocated) == 0 {
		return true
	}
	for _, claim := range c.unallocated {
		if claim.UID == freed.UID {
			return true
		}
		prepared := pl.preparing.look(claim, pl.preparing.version, pl.constrains())
		if prepared == nil || slices.ContainsFunc(freed.Status.Allocation.Devices.Results, func(device resourceapi.DeviceRequestAllocationResult) bool {
			return prepared.MayHave(device.Driver)
		}) {
			return true
		}
	}
	return false
}

// freesDevices reports whether a claim has lost its allocation, or is gone.
func freesDevices(before, after any) bool {
	old, is := before.(*resourceapi.ResourceClaim)
	if !is || old.Status.Allocation == nil {
		return false
	}
	claim, is := after.(*resourceapi.ResourceClaim)
	return !is || claim.Status.Allocation == nil
}
