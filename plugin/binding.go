// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/pendingwrites"
)

// A pod can be bound without the scheduler knowing: the answer was lost, or another scheduler has bound it that leads
// since this one was paused. Upstream's plugin takes back what the pod was given when binding seems to have failed, or
// when the pod seems to fit nowhere: it deletes the claim that was made for extended resources, without which the
// pod can't be started, takes the devices from a claim that is reserved for no other, and the pod out of its other
// claims. So before anything is taken back that was written the pod is read from the API server.

const (
	// untilBoundIsKnown is how long the API server is asked whether a pod is bound, and inCycle how long in a scheduling
	// cycle: other pods wait meanwhile.
	untilBoundIsKnown = 30 * time.Second
	inCycle           = 2 * time.Second
)

// PreBind implements [fwk.PreBindPlugin].
func (pl *DynamicResourcesCEL) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	c := cycle.ClaimsIn(state)
	if c == nil || len(pod.Spec.ResourceClaims) == 0 && c.Extended == nil {
		return pl.DynamicResources.PreBind(ctx, state, pod, node)
	}
	if status := pl.holds.Refusal(pod, c); !status.IsSuccess() {
		// Pods that use the claim were evicted after the pod was given its node.
		return status
	}
	c.Writing = true
	ctx, end := pl.writes.Binding(ctx)
	defer end()
	status := pl.DynamicResources.PreBind(ctx, state, pod, node)
	c.Written = status.IsSuccess()
	return status
}

// Unreserve implements [fwk.ReservePlugin].
func (pl *DynamicResourcesCEL) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	c := cycle.ClaimsIn(state)
	isWriting, patience := c != nil && c.Writing, inCycle
	if isWriting {
		patience = untilBoundIsKnown
	}
	if !isWriting && !pl.mayBeBound(pod) {
		pl.DynamicResources.Unreserve(ctx, state, pod, node)
		return
	}
	logger := klog.FromContext(ctx)
	bound, err := pl.writes.Bound(ctx, pod, patience)
	switch {
	case err != nil:
		logger.Error(err, "It is not known whether the pod is bound, its devices are taken back", "pod", klog.KObj(pod), "node", node)
	case bound != nil:
		logger.Info("The pod is bound, though the scheduler was not told so: it keeps its devices", "pod", klog.KObj(pod), "node", bound.Spec.NodeName)
		if isWriting && c.Written && bound.Spec.NodeName == node {
			return
		}
		// Another scheduler may have bound it, with other devices than this one has in mind.
		ctx = pendingwrites.Keeping(ctx, bound)
	}
	pl.DynamicResources.Unreserve(ctx, state, pod, node)
}

// PodGroupPostFilter implements [fwk.PodGroupPostFilterPlugin].
func (pl *DynamicResourcesCEL) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	for _, pod := range group.GetUnscheduledPods() {
		if why := pl.keepsDevices(ctx, pod); why != "" {
			return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("%s: %s", pod.Name, why))
		}
	}
	return pl.DynamicResources.PodGroupPostFilter(ctx, state, group, schedule)
}

// keepsDevices is why nothing may be taken back from a pod that fits nowhere, "" if it may: the pod is bound, or that
// can't be found out.
func (pl *DynamicResourcesCEL) keepsDevices(ctx context.Context, pod *v1.Pod) string {
	if !pl.mayBeBound(pod) {
		return ""
	}
	bound, err := pl.writes.Bound(ctx, pod, inCycle)
	switch {
	case err != nil:
		return fmt.Sprintf("it is not known whether the pod is bound, so that nothing is taken back: %v", err)
	case bound != nil:
		return "the pod is bound to node " + bound.Spec.NodeName + " already, and keeps its devices"
	default:
		return ""
	}
}

// mayBeBound reports whether a scheduler has given the pod devices: before that none binds it.
func (pl *DynamicResourcesCEL) mayBeBound(pod *v1.Pod) bool {
	if pl.exchange == nil {
		return false
	}
	if pod.Status.ExtendedResourceClaimStatus != nil || slices.ContainsFunc(pl.resolver.ClaimsOf(pod), func(claim *resourceapi.ResourceClaim) bool {
		return resourceclaim.IsReservedForPod(pod, claim, true)
	}) {
		return true
	}
	if pl.resolver.ExtendedClaim(pod) == nil {
		return false
	}
	// The list may have a claim that was made for the pod before it has the pod that names it.
	claims, err := pl.resolver.Manager.ResourceClaims().List()
	return err != nil || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		return claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" && metav1.IsControlledBy(claim, pod)
	})
}
