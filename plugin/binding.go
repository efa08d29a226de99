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

// A pod may be bound without this scheduler's knowledge: the API server's response was lost, or another leader bound the pod
// while this scheduler was paused. If binding seems to have failed, or the pod seems to fit nowhere, upstream's plugin revokes
// the pod's devices:
//
//   - It deletes the claim that was made for extended resources. Without this claim the pod can't start.
//   - It deallocates a claim that is reserved for no other pod, and removes the pod from its other claims.
//
// So if this scheduler wrote to any claim of the pod, it first reads the pod from the API server.

const (
	// untilBoundIsKnown is the timeout for reading from the API server whether a pod is bound. inCycle is the shorter timeout
	// for reads in a scheduling cycle, because other pods wait meanwhile.
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
		// Pods that use the claim were evicted after this pod had been assigned to its node. The claim's devices are now held.
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
		logger.Error(err, "Could not find out whether the pod is bound; taking its devices back", "pod", klog.KObj(pod), "node", node)
	case bound != nil:
		logger.Info("The pod is bound although the binding request failed; it keeps its devices", "pod", klog.KObj(pod), "node", bound.Spec.NodeName)
		if isWriting && c.Written && bound.Spec.NodeName == node {
			return
		}
		// Another scheduler may have bound the pod, with other devices than this scheduler chose.
		ctx = pendingwrites.Protecting(ctx, bound)
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

// keepsDevices returns the reason why a pod that fits nowhere keeps its devices: the pod is bound, or the API server could not
// confirm that the pod is unbound. The result is "" if the devices may be revoked.
func (pl *DynamicResourcesCEL) keepsDevices(ctx context.Context, pod *v1.Pod) string {
	if !pl.mayBeBound(pod) {
		return ""
	}
	bound, err := pl.writes.Bound(ctx, pod, inCycle)
	switch {
	case err != nil:
		return fmt.Sprintf("the scheduler does not know whether the pod is bound, so the pod keeps its devices: %v", err)
	case bound != nil:
		return "the pod is bound to node " + bound.Spec.NodeName + " already, and keeps its devices"
	default:
		return ""
	}
}

// mayBeBound reports whether a claim is reserved for the pod or was made for it. Schedulers write that before they bind the
// pod.
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
	// A claim that was made for the pod may be in the cache before the pod status that names it.
	claims, err := pl.resolver.Manager.ResourceClaims().List()
	return err != nil || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		return claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" && metav1.IsControlledBy(claim, pod)
	})
}
