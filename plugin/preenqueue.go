// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator/podclaims"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/preparation"
)

// PreEnqueue keeps a pod out of the active queue while pods are being evicted for it, while its claims are being compiled, or
// while upstream's PreEnqueue or the guard would refuse it. The scheduling queue is locked meanwhile, so PreEnqueue compiles
// nothing and only looks results up.
func (pl *DynamicResourcesCEL) PreEnqueue(ctx context.Context, pod *v1.Pod) *fwk.Status {
	if pl.preempter.IsPreempting(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "pods are being evicted to free devices for this pod")
	}
	status := pl.DynamicResources.PreEnqueue(ctx, pod)
	if !pl.prepared.IsAhead() {
		return status
	}
	if !status.IsSuccess() {
		// A pod that waits for long enters the queue once. PreFilter refuses the pod for the same reason, and the scheduler
		// writes that reason to the pod's status.
		if pl.turns.MustReport(pod, status.Message(), pl.activate) {
			return nil
		}
		return status
	}
	wantsExtended := pl.resolver.WantsExtended(pod)
	if len(pod.Spec.ResourceClaims) == 0 && !wantsExtended {
		return nil
	}
	c := pl.resolver.Resolve(pod)
	if c.Err != nil || podclaims.Bounded(c.Unallocated) != nil || len(c.Unallocated) == 0 && !wantsExtended {
		// PreFilter reports mistakes in claims. Pods whose claims are already allocated are never gated.
		return status
	}
	_, missing, err := pl.prepared.Of(ctx, c.Unallocated)
	if err != nil {
		return status
	}
	if len(missing) > 0 {
		pl.prepared.Await(pod, missing)
		if why := preparation.Message(missing); !pl.turns.MustReport(pod, why, pl.activate) {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
		}
	}
	return pl.gate(pod, c)
}

// gate keeps a pod out of the scheduling queue if the guard would refuse the pod now.
func (pl *DynamicResourcesCEL) gate(pod *v1.Pod, c *cycle.PodClaims) *fwk.Status {
	if pl.turns.Gate(pl.requestOf(pod, c)) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod waits in the scheduling queue: its claims are in back-off, or other pods of the namespace go first")
	}
	return nil
}
