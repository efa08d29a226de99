// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/indoubt"
)

// A pod is bound, and the scheduler does not know: the answer was lost, or another scheduler has bound it that leads since
// this one was paused. Upstream's plugin takes back what the pod was given then, when binding seems to have failed, or
// when the pod seems to fit nowhere: it deletes the claim that was made for extended resources, without which the
// pod can't be started, takes the devices from a claim that is reserved for no other, and the pod out of its other
// claims. So before anything is taken back that was written it is looked up whether the pod is bound.

const (
	// writtenKey is where the cycle's state says that claims of the pod are written, or may be.
	writtenKey fwk.StateKey = "celset.dev/written"
	// untilBoundIsKnown is how long it is tried to find out whether a pod is bound that could not be bound, and
	// inCycle how long in a scheduling cycle: other pods wait meanwhile.
	untilBoundIsKnown = 30 * time.Second
	inCycle           = 2 * time.Second
	// boundRetry is the time between two attempts.
	boundRetry = 500 * time.Millisecond
)

// writing marks a cycle in which claims are written. all tells that all are: what follows is the binding.
type writing struct{ all bool }

// Clone implements [fwk.StateData].
func (w *writing) Clone() fwk.StateData {
	clone := *w
	return &clone
}

// PreBind implements [fwk.PreBindPlugin].
func (pl *DynamicResourcesCEL) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if !pl.asksForDevices(pod) {
		return pl.DynamicResources.PreBind(ctx, state, pod, node)
	}
	mark := &writing{}
	state.Write(writtenKey, mark)
	status := pl.DynamicResources.PreBind(ctx, state, pod, node)
	mark.all = status.IsSuccess()
	return status
}

// Unreserve implements [fwk.ReservePlugin].
func (pl *DynamicResourcesCEL) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	var mark *writing
	if data, err := state.Read(writtenKey); err == nil {
		mark, _ = data.(*writing)
	}
	if mark == nil && !pl.mayBeBound(pod) {
		pl.DynamicResources.Unreserve(ctx, state, pod, node)
		return
	}
	patience := untilBoundIsKnown
	if mark == nil {
		patience = inCycle
	}
	logger := klog.FromContext(ctx)
	live, err := pl.live(ctx, pod, patience)
	switch {
	case err != nil:
		logger.Error(err, "It is not known whether the pod is bound, its devices are taken back", "pod", klog.KObj(pod), "node", node)
	case live != nil && live.Spec.NodeName != "":
		logger.Info("The pod is bound, though the scheduler was not told so: it keeps its devices", "pod", klog.KObj(pod), "node", live.Spec.NodeName)
		if mark != nil && mark.all && live.Spec.NodeName == node {
			return
		}
		// Who has bound it may have been another scheduler, with other devices than this one has in mind.
		ctx = indoubt.Keeping(ctx, claimsIn(live))
	}
	pl.DynamicResources.Unreserve(ctx, state, pod, node)
}

// PodGroupPostFilter implements [fwk.PodGroupPostFilterPlugin].
func (pl *DynamicResourcesCEL) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	for _, pod := range group.GetUnscheduledPods() {
		if why := pl.keepsBound(ctx, pod); why != "" {
			return nil, fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("%s: %s", pod.Name, why))
		}
	}
	return pl.DynamicResources.PodGroupPostFilter(ctx, state, group, schedule)
}

// keepsBound tells, before something is taken from a pod that fits nowhere, whether it is bound, or whether
// that can't be found out.
func (pl *DynamicResourcesCEL) keepsBound(ctx context.Context, pod *v1.Pod) (why string) {
	if !pl.mayBeBound(pod) {
		return ""
	}
	live, err := pl.live(ctx, pod, inCycle)
	switch {
	case err != nil:
		return fmt.Sprintf("it is not known whether the pod is bound, so that nothing is taken back: %v", err)
	case live != nil && live.Spec.NodeName != "":
		return "the pod is bound to node " + live.Spec.NodeName + " already, and keeps its devices"
	default:
		return ""
	}
}

// mayBeBound tells whether a scheduler has given the pod devices: before that none binds it.
func (pl *DynamicResourcesCEL) mayBeBound(pod *v1.Pod) bool {
	if pod.Status.ExtendedResourceClaimStatus != nil || slices.ContainsFunc(pl.claimsOf(pod), func(claim *resourceapi.ResourceClaim) bool {
		return resourceclaim.IsReservedForPod(pod, claim, true)
	}) {
		return true
	}
	if pl.extendedClaim(pod) == nil {
		return false
	}
	// The list may have a claim that was made for the pod before it has the pod that names it.
	claims, err := pl.claims.ResourceClaims().List()
	return err != nil || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		return claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" && metav1.IsControlledBy(claim, pod)
	})
}

// live is the pod as the API server has it, which is consistent; nil if there is none.
func (pl *DynamicResourcesCEL) live(ctx context.Context, pod *v1.Pod, patience time.Duration) (live *v1.Pod, err error) {
	var last error
	err = wait.PollUntilContextTimeout(ctx, boundRetry, patience, true, func(ctx context.Context) (bool, error) {
		live, last = pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(last) {
			live, last = nil, nil
		}
		return last == nil, nil
	})
	if err != nil {
		return nil, cmp.Or(last, err)
	}
	if live != nil && live.UID != pod.UID {
		live = nil
	}
	return live, nil
}

// claimsIn are the names of the claims that a pod has.
func claimsIn(pod *v1.Pod) sets.Set[string] {
	names := sets.New[string]()
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names.Insert(*name)
		}
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		names.Insert(status.ResourceClaimName)
	}
	return names
}
