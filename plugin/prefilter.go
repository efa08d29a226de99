// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/podclaims"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/gang"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/preparation"
)

// PreFilter works in these steps:
//
//  1. It refuses a pod that must not be tried now.
//  2. It runs upstream's PreFilter.
//  3. If an unallocated claim has a CEL constraint or a preference, PreFilter checks the claim once for all nodes.
//  4. For pods with such claims, PreFilter puts celset's allocator into upstream's state. The argument "allocator" can choose
//     one allocator for all pods instead.
func (pl *DynamicResourcesCEL) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	pl.holds.TakeOver()
	c := pl.resolver.Resolve(pod)
	state.Write(cycle.ClaimsKey, c)
	if c.Err != nil {
		return nil, unusable(c.Err)
	}
	if status := pl.holds.Refusal(pod, c); !status.IsSuccess() {
		return nil, status
	}
	defer func() { c.Attempt.Progress() }()
	admitted := len(c.Unallocated) > 0
	if admitted {
		if status := pl.admit(state, pod, c); !status.IsSuccess() {
			return nil, status
		}
		if status := pl.prepare(ctx, pod, c); !status.IsSuccess() {
			return nil, status
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 || c.Extended != nil {
		if err := pl.writes.CatchUp(ctx); err != nil {
			return nil, fwk.AsStatus(err)
		}
	}
	var result *fwk.PreFilterResult
	var status *fwk.Status
	held := pl.holds.UnavailableTo(pod, c)
	seen := pl.watched.During(func() []resourceapi.DeviceRequestAllocationResult {
		return append(pl.writes.InUse(pod, c.Own(), pl.activate), held...)
	}, func() { result, status = pl.DynamicResources.PreFilter(ctx, state, pod, nodes) })
	if !status.IsSuccess() || pl.exchange == nil {
		return result, status
	}
	field, status := pl.allocatorIn(state)
	if !status.IsSuccess() || *field == nil {
		// Upstream's PreFilter found all claims allocated, so there is nothing to allocate.
		return result, status
	}
	if !admitted {
		// The pod needs devices for extended resources, or its claims were deallocated after they were resolved.
		*c = *pl.resolver.Resolve(pod)
		if c.Err != nil {
			return nil, unusable(c.Err)
		}
		if status := pl.admit(state, pod, c); !status.IsSuccess() {
			return nil, status
		}
	}
	if status := pl.chooseAllocator(ctx, state, field, pod, c, seen); !status.IsSuccess() {
		return nil, status
	}
	if c.Ours == nil || !result.AllNodes() {
		return result, nil
	}
	return pl.passOver(state, pod, nodes, c), nil
}

// admit begins an attempt unless the guard refuses the pod. The guard refuses if the claims are in back-off, or if the
// namespace has used up its share of the scheduler's time. The guard activates a refused pod later, without any event in the
// cluster.
func (pl *DynamicResourcesCEL) admit(state fwk.CycleState, pod *v1.Pod, c *cycle.PodClaims) *fwk.Status {
	if attempt := gang.AttemptIn(state); attempt != nil {
		c.Attempt = attempt
		return nil
	}
	attempt, refusal := pl.turns.Admit(pl.requestOf(pod, c))
	if refusal != nil {
		pl.metrics.ObserveRefusal(metrics.Refusal(refusal.Reason))
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Message)
	}
	c.Attempt = attempt
	return nil
}

// requestOf returns the request to the guard to admit the pod.
func (pl *DynamicResourcesCEL) requestOf(pod *v1.Pod, c *cycle.PodClaims) guard.Request {
	uids := make([]types.UID, 0, len(c.Unallocated))
	for _, claim := range c.Unallocated {
		uids = append(uids, claim.UID)
	}
	return guard.Request{Pod: pod, Claims: uids, Timeout: pl.attemptTimeout, Activate: pl.activate}
}

// prepare sets the compiled claims in c. If a claim is not compiled yet, prepare refuses the pod, and the pod is activated once
// the claim is compiled.
func (pl *DynamicResourcesCEL) prepare(ctx context.Context, pod *v1.Pod, c *cycle.PodClaims) *fwk.Status {
	if err := podclaims.Bounded(c.Unallocated); err != nil {
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return unusable(err)
	}
	if err := pl.resolver.Checker.Classes(c.Unallocated, pl.resolver.Manager.DeviceClasses()); err != nil {
		return unusable(err)
	}
	prepared, missing, err := pl.prepared.Of(ctx, c.Unallocated)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if len(missing) > 0 {
		pl.prepared.Await(pod, missing)
		pl.metrics.ObserveRefusal(metrics.RefusalPreparing)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, preparation.Message(missing))
	}
	c.Prepared, c.IsPrepared = prepared, true
	return nil
}

// unusable returns the status of a pod whose claims have a mistake, so that no devices can help. The scheduler retries the pod
// after an event about the claims.
func unusable(err error) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
}

// allocatorIn returns a pointer to the allocator in upstream's state.
func (pl *DynamicResourcesCEL) allocatorIn(state fwk.CycleState) (*structured.Allocator, *fwk.Status) {
	data, err := state.Read(dynamicresources.Name)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	field, err := pl.exchange.allocator(data)
	return field, fwk.AsStatus(err)
}

// chooseAllocator either keeps upstream's allocator in the cycle state, with a time limit and the compiled selectors, or
// replaces it with celset's. It refuses claims with mistakes.
func (pl *DynamicResourcesCEL) chooseAllocator(ctx context.Context, state fwk.CycleState, field *structured.Allocator, pod *v1.Pod, c *cycle.PodClaims, seen *cycle.Material) *fwk.Status {
	for _, claim := range c.Unallocated {
		if err := c.Prepared.SelectorsErr(claim); err != nil {
			pl.metrics.ObserveRefusal(metrics.RefusalSelector)
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
		}
	}
	claims := c.All()
	var constrained []*resourceapi.ResourceClaim
	group := gang.DevicesIn(state, pod)
	isUpstreams := pl.mode == configv1alpha1.AllocatorUpstream && group == nil
	if !isUpstreams {
		constrained = pl.resolver.Constrained(claims)
		isUpstreams = group == nil && len(constrained) == 0 && pl.mode != configv1alpha1.AllocatorAll && !pl.resolver.Prefers(c.Prepared, claims)
	}
	if isUpstreams {
		if len(c.Prepared) > 0 {
			upstreams, err := pl.allocators.NewUpstreams(ctx, c.Prepared, *seen)
			if err != nil {
				return fwk.AsStatus(err)
			}
			*field = upstreams
		}
		*field = cycle.NewLimitedAllocator(*field, c.Attempt)
		return nil
	}
	if len(constrained) > 0 && !pl.resolver.Enabled {
		pl.metrics.ObserveRefusal(metrics.RefusalGate)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, gateMessage(constrained[0]))
	}
	budget := allocator.NewAttemptBudget(pl.allocators.Budget)
	c.Attempt.OnOver(budget.End)
	ours, err := pl.allocators.NewAllocator(ctx, c.Prepared, *seen, allocator.WithAttemptBudget(budget))
	if err != nil {
		return fwk.AsStatus(err)
	}
	if err := ours.CheckConstraints(claims); err != nil {
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	c.Ours = &cycle.MeasuredAllocator{Allocator: ours, Metrics: pl.metrics, Attempt: c.Attempt, Constrained: len(constrained) > 0, Extended: c.Extended, Group: group}
	*field = c.Ours
	return nil
}

// Filter runs upstream's Filter, either for the cluster's current state or in a simulation of preemption.
func (pl *DynamicResourcesCEL) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	ctx = gang.WithLoad(pl.preempter.Simulating(ctx, state), state)
	return pl.whyUnavailable(state, pod, pl.DynamicResources.Filter(ctx, state, pod, node))
}

// whyUnavailable adds the reason to a rejection by upstream's Filter if the devices of a claim could not be attached.
// Upstream's message only says that the claim is not available.
func (pl *DynamicResourcesCEL) whyUnavailable(state fwk.CycleState, pod *v1.Pod, status *fwk.Status) *fwk.Status {
	c := cycle.ClaimsIn(state)
	if !status.IsRejected() || c == nil {
		return status
	}
	for _, claim := range c.Allocated {
		if err := pl.resolver.Checker.Attached(claim, pod.UID, time.Now()); err != nil {
			return fwk.NewStatus(status.Code(), err.Error())
		}
	}
	return status
}

// Reserve runs upstream's Reserve. If that succeeds, the back-off of the pod's claims ends.
func (pl *DynamicResourcesCEL) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	status := pl.DynamicResources.Reserve(ctx, state, pod, node)
	if status.IsSuccess() {
		if c := cycle.ClaimsIn(state); c != nil {
			c.Attempt.Succeeded()
		}
		cycle.LogChoice(ctx, state, pod, node)
		pl.holds.Reserved(pod)
	}
	return status
}

// PreFilterExtensions implements [fwk.PreFilterPlugin]. It returns nil, as upstream's does, if preemption for devices is off.
func (pl *DynamicResourcesCEL) PreFilterExtensions() fwk.PreFilterExtensions {
	return pl.preempter.Extensions()
}
