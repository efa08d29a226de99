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

// A pod for which others are evicted is tried again whenever something happens in the cluster. Between the end of a
// victim and the deallocation of its claim nothing on the node shows that a pod was evicted there. So before victims are
// chosen the hold of the pod decides, in these steps:
//
//  1. Victims have not been evicted yet, because an eviction failed or the scheduler was stopped: they are looked at
//     again, and no others.
//  2. Victims are ending, or their claims are not free yet: the pod waits, however long that takes. The hold's time is
//     the limit.
//  3. Other pods use the claims by now, because they did not pass this scheduler. They are evicted, too, if they may be and are
//     not too many.
//  4. All claims are free, and the pod still doesn't fit: it is tried once more, because they may have become free while
//     the filters ran. Then the hold ends.
//
// After a hold that ended, the next try waits for a back-off.

// outlook is what a pod can expect of its hold.
type outlook int

const (
	// waits: the devices are not free yet.
	waits outlook = iota
	// resumes: victims were not evicted yet.
	resumes
	// free: the devices have become free.
	free
	// joins: pods that did not pass this scheduler use claims of victims. They become victims.
	joins
	// lost: the pod won't get the devices.
	lost
	// broken: a pod of a higher priority uses the devices.
	broken
)

// outlookOf returns what a pod that fits nowhere can expect of its hold. refused is the status of the hold's node. why
// is the reason for lost.
func (p *Preempter) outlookOf(held *hold.Hold, refused *fwk.Status) (expected outlook, why string) {
	// The node may refuse the pod for a while only, such as by a taint. That ends no hold while victims are ending: others
	// would be evicted for the pod meanwhile.
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
		return lost, "the node refuses it for another reason: " + refused.Message()
	}
	switch user := used.user(); {
	case user != "":
		return lost, user
	case used.freeing, p.areKept(held):
		return waits, ""
	case elsewhere:
		return lost, "the node refuses it for another reason: " + refused.Message()
	case !p.Holding.NoteFree(held.Pod.UID):
		return free, ""
	default:
		return lost, "they are free, and the node refuses it: " + refused.Message()
	}
}

// areKept reports whether held devices are kept because it is not known yet whether the allocation of a victim was stored.
// The pod is tried again when it is known.
func (p *Preempter) areKept(held *hold.Hold) bool {
	own := types.UID("")
	if len(held.Claims) == 1 {
		own = held.Claims[0].UID
	}
	kept := preemption.DevicesOf(p.Writes.InUse(held.Pod, own, p.Holding.Activate))
	return slices.ContainsFunc(preemption.DevicesOf(held.Devices()), func(id structured.DeviceID) bool { return slices.Contains(kept, id) })
}

// victimsOf returns the victims that are still to be evicted, and whether other victims are ending.
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

// isOn reports whether a pod that is not bound yet is assumed to run on a node.
func (p *Preempter) isOn(node string, pod types.UID) bool {
	info, err := p.Handle.MutableSnapshotSharedLister().NodeInfos().Get(node)
	return err == nil && slices.ContainsFunc(info.GetPods(), func(on fwk.PodInfo) bool { return on.GetPod().UID == pod })
}

// wait decides whether pods may be evicted for a pod now. If not, status says what the pod waits for. resumed is the hold
// whose evictions go on, nil for a new try.
func (p *Preempter) wait(ctx context.Context, pod *v1.Pod, c *cycle.PodClaims, statuses *framework.NodeToStatus) (result *fwk.PostFilterResult, status *fwk.Status, resumed *hold.Hold) {
	held, ok := p.Holding.Of(pod.UID)
	if ok && p.isServed(&held) {
		// Another pod of the claims was faster. What the pod lacks now is no device, or not known yet.
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
		return nil, unresolvable("preemption: pods were evicted for another pod that uses the same resourceclaim"), nil
	}
	switch tries, left := p.Holding.Tries(pod.UID); {
	case tries >= hold.MaxTries:
		return nominated(""), unresolvable(fmt.Sprintf("preemption: pods were evicted for the pod %d times without success, nothing more is evicted for it", tries)), nil
	case left > 0 && tries == 0:
		return nominated(""), unresolvable("preemption: the hold of the pod ended before anybody was evicted for it, more only after a back-off"), nil
	case left > 0:
		return nominated(""), unresolvable(fmt.Sprintf("preemption: pods were evicted for the pod %d times without success, more only after a back-off", tries)), nil
	}
	return nil, nil, nil
}

// goOn decides what becomes of the hold of a pod that fits nowhere: evictions go on for the hold that is returned, or the pod
// waits, or the hold has ended.
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
			// The time of the attempt was over before it was known whether the pod fits.
			return nil, true
		}
	}
	klog.FromContext(ctx).Info("A pod does not wait for the devices that are held for it", "pod", klog.KObj(held.Pod), "node", klog.KRef("", held.Node), "why", why)
	p.Holding.End(held.Pod.UID, end)
	return nil, false
}

// join makes the pods victims that use claims of victims. It returns nil if there are none by now.
func (p *Preempter) join(ctx context.Context, held *hold.Hold) *hold.Hold {
	used := p.Holding.useOf(held)
	joined := used.joined(held)
	changed, ok := p.Holding.Join(held.Pod.UID, joined)
	if !ok || len(joined) == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("Pods use claims that are to be freed for a pod, and are evicted for it, too", "pod", klog.KObj(held.Pod), "node", klog.KRef("", held.Node),
		"victims", klog.KObjSlice(used.pods))
	return &changed
}

func waitingFor(held *hold.Hold) *fwk.Status {
	return unresolvable(fmt.Sprintf("preemption: waiting for held devices of node %s to be given back", held.Node))
}

// isServed reports whether all claims have got devices for which some are held.
func (p *Preempter) isServed(held *hold.Hold) bool {
	return !slices.ContainsFunc(held.Claims, func(claim hold.Claim) bool { return p.Holding.devicesOf(held.Pod.Namespace, &claim) == nil })
}

// isBeingServed reports whether a claim gets devices for another pod, and had none when the pod with the hold was tried.
// Upstream refuses the pod then, whatever the node has.
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

// nominated sets the node to which a pod is nominated, "" for none. Upstream keeps CPU and memory of that node for the
// pod.
func nominated(node string) *fwk.PostFilterResult {
	return framework.NewPostFilterResultWithNominatedNode(node)
}
