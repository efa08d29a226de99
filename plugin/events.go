// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Upstream's queueing hints miss two events after which a pod must be retried. Without a hint the pod would wait for another
// event, up to five minutes.
//
//  1. A scheduler may stop after it has created a claim for a pod's extended resources and before the claim is allocated. The
//     next scheduler deletes that claim when it tries the pod. Upstream's hints ignore the deletion of a claim without devices,
//     and the status of the pod does not name the claim yet.
//  2. Devices are in flight from the time a node is found for a pod until the pod's claim is written. Claims don't show these
//     devices, and other pods can't get them. If the pod is deleted meanwhile, the write fails and the devices become free
//     without any claim event.

// EventsToRegister returns upstream's events, with added hints for the deletion of a leftover claim and for the deletion of a
// pod that was assigned to a node.
func (pl *DynamicResourcesCEL) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	events, err := pl.DynamicResources.EventsToRegister(ctx)
	for i := range events {
		if events[i].Event.Resource == fwk.ResourceClaim {
			events[i].QueueingHintFn = pl.queueHolder(queueOwnerOfLeftover(events[i].QueueingHintFn))
			events[i].PreQueueingHintFn = considerOwnerOfLeftover(events[i].PreQueueingHintFn)
		}
	}
	if len(events) > 0 {
		events = append(events, pl.freedInFlight())
	}
	return events, err
}

func queueOwnerOfLeftover(upstream fwk.QueueingHintFn) fwk.QueueingHintFn {
	return func(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
		if owner := ownerOfLeftover(oldObj, newObj); owner != nil && owner.UID == pod.UID {
			logger.V(5).Info("claim for extended resources of the pod got deleted", "pod", klog.KObj(pod))
			return fwk.Queue, nil
		}
		return upstream(logger, pod, oldObj, newObj)
	}
}

func considerOwnerOfLeftover(upstream fwk.PreQueueingHintFn) fwk.PreQueueingHintFn {
	if upstream == nil {
		// Without a hint, all pods are considered.
		return nil
	}
	return func(logger klog.Logger, oldObj, newObj any) (fwk.PreQueueingHintResult, error) {
		result, err := upstream(logger, oldObj, newObj)
		if owner := ownerOfLeftover(oldObj, newObj); owner != nil && err == nil && !result.AllPods {
			namespace := oldObj.(*resourceapi.ResourceClaim).Namespace
			result.Pods = append(result.Pods, types.NamespacedName{Namespace: namespace, Name: owner.Name})
		}
		return result, err
	}
}

// ownerOfLeftover returns the pod that owns a claim for extended resources, if the event is the deletion of the claim.
func ownerOfLeftover(oldObj, newObj any) *metav1.OwnerReference {
	claim, ok := oldObj.(*resourceapi.ResourceClaim)
	if !ok || newObj != nil || claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		return nil
	}
	return metav1.GetControllerOf(claim)
}

// freedInFlight returns the event that an assigned pod was deleted or could not be bound. The hints of the event queue waiting
// pods if the assigned pod may have freed devices in flight.
func (pl *DynamicResourcesCEL) freedInFlight() fwk.ClusterEventWithHint {
	return fwk.ClusterEventWithHint{
		Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete},
		PreQueueingHintFn: func(_ klog.Logger, oldObj, _ any) (fwk.PreQueueingHintResult, error) {
			gone, ok := oldObj.(*v1.Pod)
			return fwk.PreQueueingHintResult{AllPods: !ok || pl.mayHaveFreed(gone)}, nil
		},
		QueueingHintFn: func(logger klog.Logger, pod *v1.Pod, oldObj, _ any) (fwk.QueueingHint, error) {
			if gone, ok := oldObj.(*v1.Pod); ok && !pl.mayHaveFreed(gone) {
				return fwk.QueueSkip, nil
			}
			logger.V(5).Info("a pod that could not be bound may have freed devices", "pod", klog.KObj(pod))
			return fwk.Queue, nil
		},
	}
}

// mayHaveFreed reports whether a deleted pod may have had devices in flight. A bound pod had no devices in
// flight, because its claims were written before it was bound. The devices of an allocated claim aren't in flight either: the
// claim's deallocation is a separate event.
func (pl *DynamicResourcesCEL) mayHaveFreed(gone *v1.Pod) bool {
	if slices.ContainsFunc(gone.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue }) {
		return false
	}
	for i := range gone.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(gone, &gone.Spec.ResourceClaims[i])
		if err == nil && name != nil && !pl.isAllocated(gone.Namespace, *name) {
			return true
		}
	}
	if status := gone.Status.ExtendedResourceClaimStatus; status != nil {
		return !pl.isAllocated(gone.Namespace, status.ResourceClaimName)
	}
	for resource := range podresources.PodRequests(gone, podresources.PodResourcesOptions{}) {
		if pl.resolver.Manager.DeviceClassResolver().GetDeviceClass(resource) != nil {
			return true
		}
	}
	return false
}

func (pl *DynamicResourcesCEL) isAllocated(namespace, claim string) bool {
	c, err := pl.resolver.Manager.ResourceClaims().Get(namespace, claim)
	return err == nil && c.Status.Allocation != nil
}

// queueHolder wraps upstream's hint about claims. It skips pods that can't use the freed devices. If devices are held for the
// pod, it also activates the pod.
func (pl *DynamicResourcesCEL) queueHolder(upstream fwk.QueueingHintFn) fwk.QueueingHintFn {
	return func(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
		hint, err := upstream(logger, pod, oldObj, newObj)
		if hint != fwk.Queue || !freesDevices(oldObj, newObj) {
			return hint, err
		}
		if err == nil && !pl.mayUseFreed(pod, oldObj.(*resourceapi.ResourceClaim)) {
			return fwk.QueueSkip, nil
		}
		pl.holds.Freed(pod)
		return hint, err
	}
}

// mayUseFreed reports whether the freed devices of a claim may help a pod.
func (pl *DynamicResourcesCEL) mayUseFreed(pod *v1.Pod, freed *resourceapi.ResourceClaim) bool {
	if freed.Status.Allocation == nil {
		return true
	}
	var drivers []string
	for _, device := range freed.Status.Allocation.Devices.Results {
		drivers = append(drivers, device.Driver)
	}
	return pl.mayUse(pod, drivers, freed.UID)
}

// mayUse reports whether devices of the drivers may help a pod, or the deallocation of the claim freed. Devices don't help if the
// selectors of the pod's claims exclude their drivers. Without this check, short-lived pods of one tenant could use up the
// scheduling time of others by futile retries. The scheduling queue may be locked meanwhile, so mayUse compiles nothing: it only
// looks up prepared claims.
func (pl *DynamicResourcesCEL) mayUse(pod *v1.Pod, drivers []string, freed types.UID) bool {
	if pl.exchange == nil || pl.resolver.WantsExtended(pod) {
		return true
	}
	c := pl.resolver.Resolve(pod)
	if c.Err != nil || len(c.Unallocated) == 0 {
		return true
	}
	return slices.ContainsFunc(c.Unallocated, func(claim *resourceapi.ResourceClaim) bool {
		return claim.UID == freed || pl.prepared.MayHave(claim, drivers)
	})
}

// freesDevices reports whether a claim was deallocated or deleted.
func freesDevices(before, after any) bool {
	old, is := before.(*resourceapi.ResourceClaim)
	if !is || old.Status.Allocation == nil {
		return false
	}
	claim, is := after.(*resourceapi.ResourceClaim)
	return !is || claim.Status.Allocation == nil
}
