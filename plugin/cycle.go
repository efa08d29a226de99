// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/podclaims"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// PreFilter refuses a pod at once that is not to be tried now, and then runs upstream's
// PreFilter. If the pod then has claims to allocate and one of them has a CEL constraint or a
// preference, these are checked, so that a mistake is reported once and not once a node, and
// upstream's Filter is made to use our allocator, unless the arguments leave all pods to
// upstream's.
func (pl *DynamicResourcesCEL) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if pl.holds != nil {
		pl.holds.restore()
	}
	c := pl.resolve(pod)
	state.Write(claimsKey, c)
	if c.err != nil {
		pl.guard.Told(pod)
		return nil, unusable(c.err)
	}
	if status := pl.checkJoining(pod, c); !status.IsSuccess() {
		return nil, status
	}
	defer func() { c.attempt.Progress() }()
	admitted := len(c.unallocated) > 0
	if admitted {
		if status := pl.admit(state, pod, c); !status.IsSuccess() {
			return nil, status
		}
		if status := pl.prepare(ctx, pod, c); !status.IsSuccess() {
			return nil, status
		}
	}
	if pl.writes != nil && (len(pod.Spec.ResourceClaims) > 0 || c.extended != nil) {
		if err := pl.writes.CatchUp(ctx); err != nil {
			return nil, fwk.AsStatus(err)
		}
	}
	var result *fwk.PreFilterResult
	var status *fwk.Status
	held, given := pl.heldFrom(pod, c)
	seen := pl.watched.during(func() []resourceapi.DeviceRequestAllocationResult { return pl.keptFrom(pod, c, held, given) },
		func() { result, status = pl.DynamicResources.PreFilter(ctx, state, pod, nodes) })
	if !status.IsSuccess() || pl.exchange == nil {
		return result, status
	}
	field, status := pl.allocatorIn(state)
	if !status.IsSuccess() || *field == nil {
		// Nothing is to be allocated: the claims were when upstream looked.
		return result, status
	}
	if !admitted {
		// The devices are for extended resources, or for claims that have lost theirs since they were resolved.
		*c = *pl.resolve(pod)
		if c.err != nil {
			return nil, unusable(c.err)
		}
		if status := pl.admit(state, pod, c); !status.IsSuccess() {
			return nil, status
		}
	}
	if status := pl.chooseAllocator(ctx, state, field, pod, c, seen); !status.IsSuccess() {
		return nil, status
	}
	if c.ours == nil || !result.AllNodes() {
		return result, nil
	}
	return pl.passOver(state, pod, nodes, c), nil
}

// admit begins an attempt, unless the guard refuses it: the claims may back off, or the namespace may have used up its
// share of the scheduler's time. The guard has the pod tried again then, without any event in the cluster.
func (pl *DynamicResourcesCEL) admit(state fwk.CycleState, pod *v1.Pod, c *podClaims) *fwk.Status {
	if attempt := groupAttemptIn(state); attempt != nil {
		c.attempt = attempt
		return nil
	}
	attempt, refusal := pl.guard.Admit(pl.requestOf(pod, c))
	if refusal != nil {
		pl.metrics.ObserveRefusal(metrics.Refusal(refusal.Reason))
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Message)
	}
	c.attempt = attempt
	return nil
}

// requestOf is what the guard has to know of a pod.
func (pl *DynamicResourcesCEL) requestOf(pod *v1.Pod, c *podClaims) guard.Request {
	uids := make([]types.UID, 0, len(c.unallocated))
	for _, claim := range c.unallocated {
		uids = append(uids, claim.UID)
	}
	return guard.Request{Pod: pod, Claims: uids, Timeout: pl.attemptTimeout, Activate: pl.activate}
}

// prepare looks up what the claims say. It refuses a pod with a claim of which that is not known yet, and has it activated
// when it is.
func (pl *DynamicResourcesCEL) prepare(ctx context.Context, pod *v1.Pod, c *podClaims) *fwk.Status {
	if err := podclaims.Bounded(c.unallocated); err != nil {
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return unusable(err)
	}
	if err := pl.checker.Classes(c.unallocated, pl.claims.DeviceClasses()); err != nil {
		return unusable(err)
	}
	prepared, missing, err := pl.preparing.prepared(ctx, c.unallocated, pl.constrains())
	if err != nil {
		return fwk.AsStatus(err)
	}
	if len(missing) > 0 {
		pl.preparing.await(pod, missing, pl.constrains(), pl.activate)
		pl.metrics.ObserveRefusal(metrics.RefusalPreparing)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, unprepared(missing))
	}
	c.prepared = prepared
	return nil
}

// unusable is the status of a pod that can't use its claims, whatever devices are free. An event about the claims has it tried again.
func unusable(err error) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
}

// allocatorIn is where upstream has its allocator.
func (pl *DynamicResourcesCEL) allocatorIn(state fwk.CycleState) (*structured.Allocator, *fwk.Status) {
	data, err := state.Read(dynamicresources.Name)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	field, err := pl.exchange.allocator(data)
	return field, fwk.AsStatus(err)
}

// chooseAllocator leaves upstream's allocator in the cycle state, with a limit for its time and with the selectors as they
// were compiled, or puts ours there, for claims in which nothing is wrong.
func (pl *DynamicResourcesCEL) chooseAllocator(ctx context.Context, state fwk.CycleState, field *structured.Allocator, pod *v1.Pod, c *podClaims, seen *material) *fwk.Status {
	for _, claim := range c.unallocated {
		if err := c.prepared.SelectorsErr(claim); err != nil {
			pl.metrics.ObserveRefusal(metrics.RefusalSelector)
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
		}
	}
	claims := c.all()
	var constrained []*resourceapi.ResourceClaim
	group := groupDevicesIn(state, pod)
	isUpstreams := pl.mode == configv1alpha1.AllocatorUpstream && group == nil
	if !isUpstreams {
		constrained = pl.constrained(claims)
		isUpstreams = group == nil && len(constrained) == 0 && pl.mode != configv1alpha1.AllocatorAll && !pl.prefers(c.prepared, claims)
	}
	if isUpstreams {
		if len(c.prepared) > 0 {
			all, err := pl.gatherMaterial(ctx, *seen)
			if err != nil {
				return fwk.AsStatus(err)
			}
			*field, err = structured.NewAllocator(ctx, dynamicresources.AllocatorFeatures(pl.features), *all.allocated,
				pl.claims.DeviceClasses(), all.slices, c.prepared.SelectorsOr(pl.preparing.Selectors))
			if err != nil {
				return fwk.AsStatus(err)
			}
		}
		*field = newLimitedAllocator(*field, c.attempt)
		return nil
	}
	if len(constrained) > 0 && !pl.enabled {
		pl.metrics.ObserveRefusal(metrics.RefusalGate)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, gateMessage(constrained[0]))
	}
	budget := allocator.NewAttemptBudget(pl.budget)
	c.attempt.OnOver(budget.End)
	ours, err := pl.newAllocator(ctx, c.prepared, *seen, allocator.WithAttemptBudget(budget))
	if err != nil {
		return fwk.AsStatus(err)
	}
	if err := ours.CheckConstraints(claims); err != nil {
		pl.metrics.ObserveRefusal(metrics.RefusalConstraint)
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	c.ours = &measuredAllocator{Allocator: ours, metrics: pl.metrics, attempt: c.attempt, constrained: len(constrained) > 0, extended: c.extended, group: group}
	*field = c.ours
	return nil
}

func (pl *DynamicResourcesCEL) newAllocator(ctx context.Context, prepared allocator.Prepared, seen material, opts ...allocator.Option) (*allocator.Allocator, error) {
	all, err := pl.gatherMaterial(ctx, seen)
	if err != nil {
		return nil, err
	}
	if pl.enabled {
		opts = append(opts,
			allocator.WithDefaultPreference(pl.preference), allocator.WithShapes(pl.asked.shapes()))
	} else {
		opts = append(opts, allocator.WithoutDefaultConstraints(), allocator.WithoutPreferences())
	}
	opts = append(opts,
		allocator.WithReasons(), allocator.WithEnvironment(pl.preparing.environment), allocator.WithPrepared(prepared), allocator.WithCache(pl.cache),
		allocator.WithBudget(pl.budget))
	return allocator.NewAllocator(ctx, dynamicresources.AllocatorFeatures(pl.features), *all.allocated,
		pl.claims.DeviceClasses(), all.slices, prepared.SelectorsOr(pl.preparing.Selectors), opts...)
}

// Filter runs upstream's Filter, for what is or for what would be.
func (pl *DynamicResourcesCEL) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if pl.preempter != nil {
		if s := simulationIn(state); s != nil {
			ctx = context.WithValue(ctx, simulationInContext{}, s)
		}
	}
	return pl.whyUnavailable(state, pod, pl.DynamicResources.Filter(withLoad(ctx, state), state, pod, node))
}

// Reserve runs upstream's Reserve. There are devices for the pod then: what failed before
// does not count any more.
func (pl *DynamicResourcesCEL) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	status := pl.DynamicResources.Reserve(ctx, state, pod, node)
	if status.IsSuccess() {
		if c := claimsIn(state); c != nil {
			c.attempt.Succeeded()
		}
		logChoice(ctx, state, pod, node)
		pl.taken(pod)
	}
	return status
}
