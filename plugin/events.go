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

// Upstream's hints leave out two events after which a pod has to be tried again. Without them it would wait for
// something else to happen, up to five minutes.
//
// A scheduler that dies after it has created the claim for a pod's extended resources, and before it has allocated it,
// leaves a claim behind. The next one deletes it when it comes to the pod. To upstream's hints the deletion of a claim
// without devices helps no pod, and the pod does not know the name of the claim yet.
//
// From the moment when a node is found for a pod until its claim is written, the devices are in flight: no claim has
// them, and no other pod can have them. If the pod is deleted in between, writing fails and they are free again, which no
// claim shows.

// EventsToRegister returns upstream's events, with hints that have a pod tried again when the claim that was left for
// its extended resources is gone, and the event that a pod for which there was a node is gone.
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
		// Then all pods are considered.
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

// ownerOfLeftover returns the pod for whose extended resources a claim was made, if
// the event is that it is gone.
func ownerOfLeftover(oldObj, newObj any) *metav1.OwnerReference {
	claim, ok := oldObj.(*resourceapi.ResourceClaim)
	if !ok || newObj != nil || claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" {
		return nil
	}
	return metav1.GetControllerOf(claim)
}

// freedInFlight is the event that a pod for which there was a node is gone, because it
// was deleted or because it could not be bound, with hints for when that frees devices.
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
			logger.V(5).Info("pod that could not be bound may have freed devices", "pod", klog.KObj(pod))
			return fwk.Queue, nil
		},
	}
}

// mayHaveFreed reports whether a pod that is gone had devices for a claim that has none. If
// the claim still has them, the event of its deallocation will follow. That event also follows if the API server
// has bound the pod, because the claim was written before.
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
		pl.holds.Freed(pod)
		return hint, err
	}
}

// mayUse reports whether the freed devices of a claim may help a pod. They don't if the selectors of the pod's claims
// exclude their drivers. Otherwise pods that come and go would have the waiting pods of other tenants tried in vain, which
// uses up the share of those tenants. It is called while the scheduling queue is locked, so it only looks up.
func (pl *DynamicResourcesCEL) mayUse(pod *v1.Pod, freed *resourceapi.ResourceClaim) bool {
	if pl.exchange == nil || freed.Status.Allocation == nil || pl.resolver.WantsExtended(pod) {
		return true
	}
	c := pl.resolver.Resolve(pod)
	if c.Err != nil || len(c.Unallocated) == 0 {
		return true
	}
	var drivers []string
	for _, device := range freed.Status.Allocation.Devices.Results {
		drivers = append(drivers, device.Driver)
	}
	return slices.ContainsFunc(c.Unallocated, func(claim *resourceapi.ResourceClaim) bool {
		return claim.UID == freed.UID || pl.prepared.MayHave(claim, drivers)
	})
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
