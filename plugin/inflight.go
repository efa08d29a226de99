// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// From the moment when a node is found for a pod until its claim is written, the devices
// are in flight: no claim has them, and no other pod can have them. If the pod is deleted
// in between, writing fails and they are free again, which no claim shows. Upstream's
// plugin does not listen to anything else. A pod that was refused because of them would
// wait for five minutes.

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

// mayHaveFreed tells whether a pod that is gone had devices for a claim that has none. If
// the claim still has them, the event of its deallocation will follow.
func (pl *DynamicResourcesCEL) mayHaveFreed(gone *v1.Pod) bool {
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
		if pl.claims.DeviceClassResolver().GetDeviceClass(resource) != nil {
			return true
		}
	}
	return false
}

func (pl *DynamicResourcesCEL) isAllocated(namespace, claim string) bool {
	c, err := pl.claims.ResourceClaims().Get(namespace, claim)
	return err == nil && c.Status.Allocation != nil
}

// AssumeClaimAfterAPICall implements [fwk.ResourceClaimTracker]. Upstream's plugin asks for
// it until the claim that it has made for a pod's extended resources is in the cache. If
// it is not because pod and claim were deleted, that takes two minutes, in which the
// devices stay in flight. An error other than the cache's ends it; what the claim has got is kept all
// the same, until the watch has told of it or it is gone (package indoubt).
func (c watchedClaims) AssumeClaimAfterAPICall(claim *resourceapi.ResourceClaim) error {
	err := c.ResourceClaimTracker.AssumeClaimAfterAPICall(claim)
	if errors.Is(err, assumecache.ErrNotFound) && c.hasLostOwner(claim) {
		return fmt.Errorf("pod of claim %s got deleted", klog.KObj(claim))
	}
	return err
}

func (c watchedClaims) hasLostOwner(claim *resourceapi.ResourceClaim) bool {
	owner := metav1.GetControllerOf(claim)
	if owner == nil {
		return false
	}
	pods := c.SharedInformerFactory().Core().V1().Pods().Lister()
	pod, err := pods.Pods(claim.Namespace).Get(owner.Name)
	return apierrors.IsNotFound(err) || err == nil && pod.UID != owner.UID
}
