// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// The scheduler tries one pod after the other. Before anything is computed for a pod with
// claims, the guard is asked whether it is to be tried now: its claims may back off, or its
// namespace may have used up its share of the scheduler's time. The guard has the pod tried
// again, without any event in the cluster.

// activator puts a pod from wherever it waits into the queue of those that can be tried. If
// it is being handled still, it goes there afterwards.
func activator(ctx context.Context, handle fwk.Handle) func(*v1.Pod) {
	logger := klog.FromContext(ctx)
	return func(pod *v1.Pod) { handle.Activate(logger, map[string]*v1.Pod{klog.KObj(pod).String(): pod}) }
}

// admitClaims admits a pod that has claims to allocate. There is no attempt for others, nor
// for those of which upstream's PreFilter will say that a claim is missing.
func (pl *DynamicResourcesCEL) admitClaims(pod *v1.Pod) (*guard.Attempt, *fwk.Status) {
	if len(pod.Spec.ResourceClaims) == 0 || pl.exchange == nil {
		return nil, nil
	}
	claims, err := pl.unallocatedClaims(pod)
	if err != nil || len(claims) == 0 {
		return nil, nil
	}
	return pl.admit(pod, claims)
}

func (pl *DynamicResourcesCEL) admit(pod *v1.Pod, claims []*resourceapi.ResourceClaim) (*guard.Attempt, *fwk.Status) {
	uids := make([]types.UID, 0, len(claims))
	for _, claim := range claims {
		uids = append(uids, claim.UID)
	}
	attempt, refusal := pl.guard.Admit(guard.Request{Pod: pod, Claims: uids, Timeout: pl.attemptTimeout, Activate: pl.activate})
	if refusal == nil {
		return attempt, nil
	}
	pl.metrics.ObserveRefusal(metrics.Refusal(refusal.Reason))
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Message)
}

// attemptIn is the attempt that the cycle belongs to, nil if there is none.
func (pl *DynamicResourcesCEL) attemptIn(state fwk.CycleState) *guard.Attempt {
	if pl.exchange == nil {
		return nil
	}
	field, status := pl.allocatorIn(state)
	if !status.IsSuccess() {
		return nil
	}
	switch a := (*field).(type) {
	case *measuredAllocator:
		return a.attempt
	case *limitedAllocator:
		return a.attempt
	default:
		return nil
	}
}

// Reserve runs upstream's Reserve. There are devices for the pod then: what failed before
// does not count any more.
func (pl *DynamicResourcesCEL) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	attempt := pl.attemptIn(state)
	status := pl.DynamicResources.Reserve(ctx, state, pod, node)
	if status.IsSuccess() {
		attempt.Succeeded()
		logChoice(ctx, state, pod, node)
		pl.taken(pod)
	}
	return status
}
