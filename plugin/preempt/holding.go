// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

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
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/hold"
)

// A pod can get a held device in three ways. Each is checked against the holds, in all profiles:
//
//  1. A claim is allocated. Held devices count as in use from the beginning of the scheduling cycle, for both allocators and in
//     every simulation. So filters need no code for holds.
//  2. An allocated claim is reserved for one more pod. PreFilter refuses the pod if the claim must be freed for a preemptor.
//     PreBind checks this again.
//  3. A pod of a higher priority is allocated held devices. Reserve then breaks the hold.

// maxNamedNodes is the maximum number of nodes that a message names.
const maxNamedNodes = 5

// Holds answers, for the pods of one profile, which devices and claims are held by any profile. [NoHolds] implements Holds if
// preemption for devices is off.
type Holds interface {
	// TakeOver restores the holds that an earlier scheduler process recorded in the conditions of pods.
	TakeOver()
	// Refusal returns a status if one of the pod's allocated claims must be freed for another pod. Otherwise it returns nil.
	Refusal(pod *v1.Pod, c *cycle.PodClaims) *fwk.Status
	// RefusedBefore is the result of PostFilter for a pod that PreFilter refused before it called upstream's plugin.
	RefusedBefore(pod *v1.Pod, c *cycle.PodClaims) (*fwk.PostFilterResult, *fwk.Status)
	// UnavailableTo returns the devices that a pod must not get, in addition to the devices of allocated claims.
	UnavailableTo(pod *v1.Pod, c *cycle.PodClaims) []resourceapi.DeviceRequestAllocationResult
	// Text describes devices that the pod might have got if they were not held for other pods, or returns "".
	Text(pod *v1.Pod, c *cycle.PodClaims, nodes fwk.NodeToStatusReader) string
	// Reserved breaks other pods' holds on the devices and claims that were just reserved for the pod.
	Reserved(pod *v1.Pod)
	// Freed activates the pod if all devices that are held for it have become free.
	Freed(pod *v1.Pod)
}

// NoHolds holds nothing.
type NoHolds struct{}

// TakeOver implements [Holds].
func (NoHolds) TakeOver() {}

// Refusal implements [Holds].
func (NoHolds) Refusal(*v1.Pod, *cycle.PodClaims) *fwk.Status { return nil }

// UnavailableTo implements [Holds].
func (NoHolds) UnavailableTo(*v1.Pod, *cycle.PodClaims) []resourceapi.DeviceRequestAllocationResult {
	return nil
}

// Text implements [Holds].
func (NoHolds) Text(*v1.Pod, *cycle.PodClaims, fwk.NodeToStatusReader) string { return "" }

// Reserved implements [Holds].
func (NoHolds) Reserved(*v1.Pod) {}

// Freed implements [Holds].
func (NoHolds) Freed(*v1.Pod) {}

// RefusedBefore implements [Holds].
func (NoHolds) RefusedBefore(*v1.Pod, *cycle.PodClaims) (*fwk.PostFilterResult, *fwk.Status) {
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// Holding implements [Holds] for a scheduler with preemption for devices.
type Holding struct {
	*PodHolds
	Resolver *cycle.Resolver
	// Name is the plugin's name in the statuses of nodes.
	Name     string
	Activate func(*v1.Pod)
}

// heldFrom returns the holds with devices that the pod must not get. If a claim of a hold has been allocated since the hold
// began, the claim is left out of held, and its allocated devices are added to given. They must count as in use, too: after
// another scheduler's allocation, the informer has the claim a moment before the list of devices in use has its devices.
func (h *Holding) heldFrom(pod *v1.Pod, c *cycle.PodClaims) (held []hold.Hold, given []resourceapi.DeviceRequestAllocationResult) {
	held = h.From(pod, c.UIDs(), h.Activate)
	for i := range held {
		held[i].Claims = slices.DeleteFunc(held[i].Claims, func(claim hold.Claim) bool {
			has := h.devicesOf(held[i].Pod.Namespace, &claim)
			if has != nil {
				given = append(given, has.Devices.Results...)
			}
			return has != nil
		})
	}
	return slices.DeleteFunc(held, func(held hold.Hold) bool { return len(held.Claims) == 0 }), given
}

// devicesOf returns the allocation, stored or pending, of the claim that devices are held for, or nil.
func (h *Holding) devicesOf(namespace string, held *hold.Claim) *resourceapi.AllocationResult {
	if held.UID == "" {
		return nil
	}
	claim := h.Resolver.Claim(namespace, held.Name)
	if claim == nil || claim.UID != held.UID {
		return nil
	}
	return h.allocationOf(claim)
}

// allocationOf returns the claim's allocation: the stored one, the pending one, or nil.
func (h *Holding) allocationOf(claim *resourceapi.ResourceClaim) *resourceapi.AllocationResult {
	if claim.Status.Allocation != nil {
		return claim.Status.Allocation
	}
	return h.Resolver.Manager.ResourceClaims().GetPendingAllocation(claim.UID)
}

// UnavailableTo returns the devices held for other pods' claims. If such a claim is already allocated, it returns the allocated
// devices instead.
func (h *Holding) UnavailableTo(pod *v1.Pod, c *cycle.PodClaims) []resourceapi.DeviceRequestAllocationResult {
	held, kept := h.heldFrom(pod, c)
	for i := range held {
		kept = append(kept, held[i].Devices()...)
	}
	return kept
}

// Text implements [Holds].
func (h *Holding) Text(pod *v1.Pod, c *cycle.PodClaims, nodes fwk.NodeToStatusReader) string {
	var named []string
	others, devices := map[string]bool{}, 0
	held, _ := h.heldFrom(pod, c)
	for _, held := range held {
		devices += len(held.Devices())
		// Only this plugin refused the node, so the node may be named: the pod could run there. Other nodes may belong to other
		// tenants.
		if nodes != nil && nodes.Get(held.Node).Plugin() == h.Name {
			named = append(named, held.Node)
		} else {
			others[held.Node] = true
		}
	}
	if devices == 0 {
		return ""
	}
	return fmt.Sprintf("%d devices of %s are held for pods of the same or a higher priority, for which other pods were evicted", devices, nodeNames(named, len(others)))
}

// nodeNames returns the names of at most maxNamedNodes nodes, and the number of all other nodes.
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

// Refusal refuses a pod that uses an allocated claim if the claim must be freed for another pod. Otherwise new users could keep
// the claim allocated forever.
func (h *Holding) Refusal(pod *v1.Pod, c *cycle.PodClaims) *fwk.Status {
	if len(c.Allocated) == 0 {
		return nil
	}
	if claim := h.Refuses(pod, c.Allocated, h.Activate); claim != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf(
			"resourceclaim %s can't be used: its devices are held for a pod of the same or a higher priority, for which other pods were evicted", klog.KObj(claim)))
	}
	return nil
}

// Reserved implements [Holds].
func (h *Holding) Reserved(pod *v1.Pod) {
	var devices []structured.DeviceID
	var claims []types.UID
	for _, claim := range h.Resolver.ClaimsOf(pod) {
		claims = append(claims, claim.UID)
		if pending := h.Resolver.Manager.ResourceClaims().GetPendingAllocation(claim.UID); pending != nil {
			devices = append(devices, preemption.DevicesOf(pending.Devices.Results)...)
		}
	}
	h.Taken(pod, devices, claims)
}

// Freed activates a preemptor once all claims that must be freed for it are deallocated. Upstream would retry the pod only
// after its back-off.
func (h *Holding) Freed(pod *v1.Pod) {
	held, ok := h.Of(pod.UID)
	if !ok {
		return
	}
	// The caller holds the scheduling queue's lock, which Activate needs.
	go func() {
		if !h.useOf(&held).freeing {
			h.Activate(held.Pod)
		}
	}()
}

// freedBy returns the claims that must be deallocated for the hold.
func (h *Holding) freedBy(held *hold.Hold) (claims []*resourceapi.ResourceClaim) {
	for _, indexed := range foundBy[*resourceapi.ResourceClaim](h.claimIndex, held.Frees) {
		// The resolver may have a later version of the claim than the informer.
		if claim := h.Resolver.Claim(indexed.Namespace, indexed.Name); claim != nil && claim.UID == indexed.UID {
			claims = append(claims, claim)
		}
	}
	return claims
}

// use lists the current users of the claims that must be freed for a hold.
type use struct {
	// freeing is set if at least one of the claims is still allocated.
	freeing bool
	// other names a user that is not a pod, or is "".
	other string
	// pods holds the pods that use a claim, except victims of the hold and pods that have ended or are being deleted.
	pods []*v1.Pod
}

// useOf returns the current users of the claims that must be freed for the hold.
func (h *Holding) useOf(held *hold.Hold) (of use) {
	for _, claim := range h.freedBy(held) {
		if h.allocationOf(claim) == nil {
			continue
		}
		of.freeing = true
		for _, user := range claim.Status.ReservedFor {
			if !preemption.IsPod(user) {
				of.other = fmt.Sprintf("%s %s", user.Resource, klog.KRef(claim.Namespace, user.Name))
				continue
			}
			pod, err := h.pods.Pods(claim.Namespace).Get(user.Name)
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

// user describes one user that keeps a claim allocated, or returns "".
func (u *use) user() string {
	switch {
	case u.other != "":
		return u.other + " uses some of the devices"
	case len(u.pods) > 0:
		return fmt.Sprintf("pod %s uses some of the devices", klog.KObj(u.pods[0]))
	default:
		return ""
	}
}

// isHigher reports whether a pod that uses a claim has a higher priority than the preemptor.
func (u *use) isHigher(held *hold.Hold) bool {
	return slices.ContainsFunc(u.pods, func(pod *v1.Pod) bool { return corev1helpers.PodPriority(pod) > corev1helpers.PodPriority(held.Pod) })
}

// joined returns the UIDs of u.pods if all users can be evicted for the preemptor, otherwise nil. This scheduler refuses pods
// that start to use a claim that must be freed. So these users were created with a NodeName, or placed by a scheduler without
// the plugin.
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

// RefusedBefore is the result of PostFilter for a pod that PreFilter refused before it called upstream's plugin. Such a pod
// waits for its turn, its back-off or the compilation of its claims. The status keeps other PostFilter plugins from running,
// because DefaultPreemption would clear the nomination.
func (h *Holding) RefusedBefore(pod *v1.Pod, c *cycle.PodClaims) (*fwk.PostFilterResult, *fwk.Status) {
	if held, ok := h.Of(pod.UID); ok {
		return nominated(held.Node), fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	if c != nil && c.Err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// exists reports whether the pod that uses a claim exists. A user that is not a pod counts as existing.
func (h *Holding) exists(namespace string, user resourceapi.ResourceClaimConsumerReference) bool {
	if !preemption.IsPod(user) {
		return true
	}
	pod, err := h.pods.Pods(namespace).Get(user.Name)
	return err == nil && pod.UID == user.UID
}
