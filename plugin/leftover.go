// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// A scheduler that dies after it has created the claim for a pod's extended resources,
// and before it has allocated it, leaves a claim behind that the next one deletes when
// it comes to the pod. The pod has to be tried again then. Upstream's hints leave that
// out: to them the deletion of a claim without devices is good for nobody, and the pod
// does not know the name of the claim yet. It would wait for something else to happen,
// up to five minutes.

// EventsToRegister returns upstream's events, with hints that have a pod tried again
// when the claim that was left for its extended resources is gone, and one event more:
// see freedInFlight.
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
