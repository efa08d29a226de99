// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/hold"
)

// A preemptor is tried again on many events in the cluster. When a victim has ended and its claim is not deallocated yet,
// nothing on the node shows the eviction. So before victims are chosen, the hold of the preemptor decides:
//
//  1. If victims have not been evicted yet, evictions continue with these victims only. An eviction may have failed, or the
//     scheduler was stopped.
//  2. If victims are terminating, or their claims are still allocated, the preemptor waits until the hold times out.
//  3. If pods that bypassed this scheduler use the claims by now, these pods are evicted, too. If they are too many or can't be
//     evicted, the hold ends.
//  4. If all claims are free and the preemptor still doesn't fit, it is tried once more: the claims may have become free while
//     the filters ran. After that try the hold ends.
//
// After a hold has ended, the next try waits for a back-off.

// outlook is the decision about a hold whose preemptor fits nowhere.
type outlook int

const (
	// waits means that the preemptor waits, because the held devices are not free yet.
	waits outlook = iota
	// resumes means that evictions continue, because some victims were not evicted yet.
	resumes
	// free means that the devices have just become free, and the preemptor is tried once more.
	free
	// joins means that pods which bypassed this scheduler use the victims' claims. These pods are evicted, too.
	joins
	// lost means that the hold ends, because the preemptor won't get the devices.
	lost
	// broken means that the hold ends, because a pod of a higher priority uses the devices.
	broken
)

// outlookOf decides about the hold of a preemptor that fits nowhere. refused is the status of the hold's node. why is the
// reason if the hold is lost or broken.
func (p *Preempter) outlookOf(held *hold.Hold, refused *fwk.Status) (expected outlook, why string) {
	// If another plugin refuses the node, for example because of a taint, the reason may be temporary. While victims are
	// terminating, such a refusal must not end the hold, because a new try would evict more pods.
	elsewhere := refused.Code() == fwk.UnschedulableAndUnresolvable && refused.Plugin() != p.Name
	alive, ending := p.victimsOf(held)
	used := p.Holding.useOf(held)
	switch {
	case used.isHigher(held):
		return broken, used.user()
	case len(alive) > 0 && !elsewhere:
		return resumes, ""
	case len(used.joined(held)) > 0 && !elsewhere && held.Joined+len(used.joined(held)) <= hold.MaxJoined:
		return joins, ""
	case ending:
		return waits, ""
	case len(alive) > 0:
		return lost, "the node refuses the pod for another reason: " + refused.Message()
	}
	switch user := used.user(); {
	case user != "":
		return lost, user
	case used.freeing, p.arePending(held):
		return waits, ""
	case elsewhere:
		return lost, "the node refuses the pod for another reason: " + refused.Message()
	case !p.Holding.NoteFree(held.Pod.UID):
		return free, ""
	default:
		return lost, "the devices are free, but the node refuses the pod: " + refused.Message()
	}
}

// arePending reports whether the pending write of another claim reserves held devices: the scheduler doesn't know yet whether a
// victim's allocation was stored. The preemptor is activated when that write is settled.
func (p *Preempter) arePending(held *hold.Hold) bool {
	own := types.UID("")
	if len(held.Claims) == 1 {
		own = held.Claims[0].UID
	}
	kept := preemption.DevicesOf(p.Writes.InUse(held.Pod, own, p.Holding.Activate))
	return slices.ContainsFunc(preemption.DevicesOf(held.Devices()), func(id structured.DeviceID) bool { return slices.Contains(kept, id) })
}

// victimsOf returns the victims that are not evicted yet. ending is set if other victims are terminating.
func (p *Preempter) victimsOf(held *hold.Hold) (alive []types.UID, ending bool) {
	for _, pod := range p.Holding.podsOf(held.Victims) {
		recently, inMemory := p.Holding.WasEvicted(held.Pod.UID, pod.UID)
		switch {
		case inMemory:
		case pod.DeletionTimestamp != nil, recently:
			ending = true
		case pod.Status.Phase == v1.PodSucceeded, pod.Status.Phase == v1.PodFailed:
		case pod.Spec.NodeName != "" || p.isOn(held.Node, pod.UID):
			alive = append(alive, pod.UID)
		}
	}
	return alive, ending
}

// isOn reports whether the scheduler's snapshot has the pod on the node, even if the pod is not bound yet.
func (p *Preempter) isOn(node string, pod types.UID) bool {
	info, err := p.Handle.MutableSnapshotSharedLister().NodeInfos().Get(node)
	return err == nil && slices.ContainsFunc(info.GetPods(), func(on fwk.PodInfo) bool { return on.GetPod().UID == pod })
}

// wait decides whether pods may be evicted for the pod now. If not, status is the reason, and PostFilter returns it. If
// evictions of an existing hold continue, resumed is that hold.
func (p *Preempter) wait(ctx context.Context, pod *v1.Pod, c *cycle.PodClaims, statuses *framework.NodeToStatus) (result *fwk.PostFilterResult, status *fwk.Status, resumed *hold.Hold) {
	held, ok := p.Holding.Of(pod.UID)
	if ok && p.isServed(&held) {
		// Other pods of these claims have got the claims allocated. If this pod has no unallocated claims either, it lacks
		// something else. Otherwise its cycle began before the allocation.
		if len(c.All()) == 0 {
			return nil, nil, nil
		}
		return nominated(held.Node), waitingFor(&held), nil
	}
	if ok {
		resumed, waits := p.goOn(ctx, &held, c, statuses)
		switch {
		case resumed != nil:
			return nil, nil, resumed
		case waits:
			return nominated(held.Node), waitingFor(&held), nil
		}
	}
	var unallocated []types.UID
	for _, claim := range c.Unallocated {
		unallocated = append(unallocated, claim.UID)
	}
	if _, ok := p.Holding.For(pod, unallocated, p.Holding.Activate); ok {
		return nil, unresolvable("preemption: pods were evicted for another pod that uses the same resourceclaim, so none are evicted for this pod"), nil
	}
	switch tries, left := p.Holding.Tries(pod.UID); {
	case tries >= hold.MaxTries:
		return nominated(""), unresolvable(fmt.Sprintf("preemption: pods were evicted for the pod %d times without success, and no more pods are evicted for it: create the pod again to allow evictions", tries)), nil
	case left > 0 && tries == 0:
		return nominated(""), unresolvable("preemption: the hold of devices for the pod ended before any pod was evicted: the next try is after a back-off"), nil
	case left > 0:
		return nominated(""), unresolvable(fmt.Sprintf("preemption: pods were evicted for the pod %d times without success: the next eviction is after a back-off", tries)), nil
	}
	return nil, nil, nil
}

// goOn decides about the hold of a pod that fits nowhere. If evictions continue, it returns the hold. If the pod waits, waiting
// is true. Otherwise the hold has ended.
func (p *Preempter) goOn(ctx context.Context, held *hold.Hold, c *cycle.PodClaims, statuses *framework.NodeToStatus) (resumed *hold.Hold, waiting bool) {
	if p.isBeingServed(held, c) {
		return nil, true
	}
	expected, why := p.outlookOf(held, statuses.Get(held.Node))
	end := hold.Lost
	switch expected {
	case waits:
		p.giveBack(ctx, held)
		return nil, true
	case free:
		p.Holding.Activate(held.Pod)
		return nil, true
	case resumes:
		if !p.Holding.MayResume(held.Pod.UID) {
			return nil, true
		}
		return held, false
	case joins:
		if !p.Holding.MayResume(held.Pod.UID) {
			return nil, true
		}
		resumed = p.join(ctx, held)
		return resumed, resumed == nil
	case broken:
		end = hold.Broken
	case lost:
		if c.Attempt.Over() != nil {
			// The attempt's time was over before the filters could decide whether the pod fits.
			return nil, true
		}
	}
	klog.FromContext(ctx).Info("A pod stopped waiting for the devices that are held for it", "pod", klog.KObj(held.Pod), "node", klog.KRef("", held.Node), "why", why)
	p.Holding.End(held.Pod.UID, end)
	return nil, false
}

// join adds the pods that have begun to use the victims' claims to the hold's victims. It returns nil if there are no such pods
// or too many.
func (p *Preempter) join(ctx context.Context, held *hold.Hold) *hold.Hold {
	used := p.Holding.useOf(held)
	joined := used.joined(held)
	changed, ok := p.Holding.Join(held.Pod.UID, joined)
	if !ok || len(joined) == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("Evicting pods that started to use claims which are being freed for another pod", "pod", klog.KObj(held.Pod), "node", klog.KRef("", held.Node),
		"victims", klog.KObjSlice(used.pods))
	return &changed
}

func waitingFor(held *hold.Hold) *fwk.Status {
	return unresolvable(fmt.Sprintf("preemption: waiting until the evicted pods free the held devices of node %s", held.Node))
}

// isServed reports whether every claim of the hold is allocated by now.
func (p *Preempter) isServed(held *hold.Hold) bool {
	return !slices.ContainsFunc(held.Claims, func(claim hold.Claim) bool { return p.Holding.devicesOf(held.Pod.Namespace, &claim) == nil })
}

// isBeingServed reports whether another pod got a claim of the hold allocated after this pod's cycle began. In that case
// upstream refuses this pod on every node.
func (p *Preempter) isBeingServed(held *hold.Hold, c *cycle.PodClaims) bool {
	return slices.ContainsFunc(c.Unallocated, func(claim *resourceapi.ResourceClaim) bool {
		return slices.ContainsFunc(held.Claims, func(of hold.Claim) bool {
			return of.UID == claim.UID && p.Holding.devicesOf(held.Pod.Namespace, &of) != nil
		})
	})
}

func unresolvable(message string) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message)
}

// nominated returns a result that nominates the pod to the node, or clears the nomination if node is "". Upstream reserves CPU
// and memory on a nominated node.
func nominated(node string) *fwk.PostFilterResult {
	return framework.NewPostFilterResultWithNominatedNode(node)
}
