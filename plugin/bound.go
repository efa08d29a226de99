// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// A pod is bound, and the answer is lost. The scheduler takes that for a failure, and upstream's plugin takes back what
// the pod was given: it deletes the claim that was made for extended resources, without which the pod can't be
// started, and takes the pod out of its other claims. So after what may have been a binding it is looked
// up whether the pod is bound, before anything is taken back.

const (
	// reservedKey is where the cycle's state says that all claims of the pod are written.
	reservedKey fwk.StateKey = "celset.dev/reserved"
	// untilBoundIsKnown is how long it is tried to find out whether a pod is bound.
	untilBoundIsKnown = 30 * time.Second
	// boundRetry is the time between two attempts.
	boundRetry = 500 * time.Millisecond
)

// reserved marks a cycle in which the claims are written. What follows is the binding.
type reserved struct{}

// Clone implements [fwk.StateData].
func (r reserved) Clone() fwk.StateData { return r }

// PreBind implements [fwk.PreBindPlugin].
func (pl *DynamicResourcesCEL) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	status := pl.DynamicResources.PreBind(ctx, state, pod, node)
	if status.IsSuccess() && pl.asksForDevices(pod) {
		state.Write(reservedKey, reserved{})
	}
	return status
}

// Unreserve implements [fwk.ReservePlugin].
func (pl *DynamicResourcesCEL) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	if _, err := state.Read(reservedKey); err == nil && pl.isBound(ctx, pod, node) {
		klog.FromContext(ctx).Info("The pod is bound, though the scheduler was not told so: it keeps its devices", "pod", klog.KObj(pod), "node", node)
		return
	}
	pl.DynamicResources.Unreserve(ctx, state, pod, node)
}

// isBound asks the API server, which is consistent. What it does not tell in time is taken for what the scheduler was
// told.
func (pl *DynamicResourcesCEL) isBound(ctx context.Context, pod *v1.Pod, node string) bool {
	bound := false
	err := wait.PollUntilContextTimeout(ctx, boundRetry, untilBoundIsKnown, true, func(ctx context.Context) (bool, error) {
		live, err := pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return apierrors.IsNotFound(err), nil
		}
		bound = live.UID == pod.UID && live.Spec.NodeName == node
		return true, nil
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "It is not known whether the pod is bound, its devices are taken back", "pod", klog.KObj(pod), "node", node)
	}
	return bound
}
