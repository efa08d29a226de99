// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/preemption"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/metrics"
)

// Preemption for devices. A pod with claims that fits nowhere, and whose profile has upstream's plugin
// DefaultPreemption, is preempted for here, in PostFilter: by upstream's code, which looks for nodes,
// compares them, evicts and nominates, with three differences. Nodes that lack devices are looked at
// too. What fits is found out with the devices given back, see simulation.go. Of the pods on a node
// those go that cost least, see victims.go. Then the devices are held, see holding.go.
//
// DefaultPreemption does not run after that: it would evict for other reasons than we found.

// preempter preempts for the pods of a profile.
type preempter struct {
	*defaultpreemption.DefaultPreemption
	pl    *DynamicResourcesCEL
	holds *hold.Holds
	args  *configv1alpha1.DevicePreemption
	// isWanted tells whether the profile preempts at all.
	isWanted func() bool
}

func newPreempter(ctx context.Context, pl *DynamicResourcesCEL, args *configv1alpha1.DevicePreemption) (*preempter, error) {
	upstream, err := defaultpreemption.New(ctx, &config.DefaultPreemptionArgs{
		MinCandidateNodesPercentage: *args.MinCandidateNodesPercentage, MinCandidateNodesAbsolute: *args.MinCandidateNodesAbsolute,
	}, pl.watched, pl.features)
	if err != nil {
		return nil, err
	}
	p := &preempter{DefaultPreemption: upstream, pl: pl, holds: pl.holds, args: args}
	upstream.Evaluator.Interface = p
	p.isWanted = func() bool {
		lister, is := pl.handle.(interface{ ListPlugins() *config.Plugins })
		return is && slices.ContainsFunc(lister.ListPlugins().PostFilter.Enabled, func(plugin config.Plugin) bool { return plugin.Name == names.DefaultPreemption })
	}
	return p, nil
}

// isPreempting reports whether pods are being evicted for the pod's devices.
func (pl *DynamicResourcesCEL) isPreempting(pod *v1.Pod) bool {
	return pl.preempter != nil && pl.preempter.Executor.IsPodRunningPreemption(pod.UID)
}

// preempt looks for pods to evict. did tells that it looked: then it has said what there is to say, and
// nobody else preempts for the pod.
func (pl *DynamicResourcesCEL) preempt(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader, c *podClaims) (result *fwk.PostFilterResult, status *fwk.Status, did bool) {
	p := pl.preempter
	statuses, is := nodes.(*framework.NodeToStatus)
	if p == nil || !is || state.IsPodGroupSchedulingCycle() || !p.isWanted() || c.err != nil || len(c.all()) == 0 {
		return nil, nil, false
	}
	defer c.attempt.Progress()
	if held, ok := p.holds.Of(pod.UID); ok {
		why := p.noUseToWait(held, statuses.Get(held.Node))
		if why == "" {
			pl.metrics.ObservePreemption(metrics.PreemptionNotEligible)
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("preemption: waiting for held devices of node %s to be given back", held.Node)), true
		}
		klog.FromContext(ctx).Info("A pod does not wait for the devices that are held for it", "pod", klog.KObj(pod), "node", klog.KRef("", held.Node), "why", why)
	}
	// One of its own, since that of the attempt may be used up.
	budget := pl.newBudget()
	c.attempt.OnOver(budget.End)
	trial, err := pl.newTrial(ctx, pod, c, budget)
	if err != nil {
		return nil, fwk.AsStatus(err), true
	}
	state.Write(simulationKey, &simulation{preemptionTrial: trial, removed: map[types.UID]*v1.Pod{}})
	defer state.Delete(simulationKey)
	result, status = p.PostFilter(ctx, state, pod, p.resolvable(pod, statuses))
	switch {
	case status.IsSuccess():
		p.promise(ctx, trial, result.NominatedNodeName)
		pl.metrics.ObservePreemption(metrics.PreemptionNominated)
	case status.Code() == fwk.Error:
		pl.metrics.ObservePreemption(metrics.PreemptionFailed)
	case result == nil:
		pl.metrics.ObservePreemption(metrics.PreemptionNotEligible)
	default:
		pl.metrics.ObservePreemption(metrics.PreemptionNotHelpful)
	}
	if status.Code() == fwk.Unschedulable {
		status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, status.Reasons()...)
	}
	return result, status, true
}

// newTrial is part of the attempt of the claims, if they have one. Any set will do: nobody chooses among sets that are
// not to be had yet.
func (pl *DynamicResourcesCEL) newTrial(ctx context.Context, pod *v1.Pod, c *podClaims, budget *allocator.AttemptBudget) (*preemptionTrial, error) {
	state, err := pl.allocatedState(ctx)
	if err != nil {
		return nil, err
	}
	kept := pl.keptFrom(pod, c)
	allocator.AddAllocated(state, kept, dynamicresources.AllocatorFeatures(pl.features))
	prepared, missing, err := pl.preparing.prepared(ctx, c.all(), pl.constrains())
	if err != nil || len(missing) > 0 {
		return nil, errors.Join(err, errNotPrepared)
	}
	base, err := pl.newAllocator(ctx, prepared, material{allocated: state}, allocator.WithoutPreferences(), allocator.WithAttemptBudget(budget))
	if err != nil {
		return nil, err
	}
	t := &preemptionTrial{
		pl: pl, pod: pod, claims: c, attempt: c.attempt, base: base,
		release: preemption.Release{
			Claim: pl.claim, Pending: pl.claims.ResourceClaims().GetPendingAllocation,
			Own: sets.New[types.UID](), Held: sets.New(preemption.DevicesOf(kept)...),
		},
		results: map[string][]resourceapi.AllocationResult{}, found: map[string]*foundVictims{},
	}
	for _, claim := range append(pl.claimsOf(pod), c.all()...) {
		t.release.Own.Insert(claim.UID)
	}
	return t, nil
}

// resolvable are the statuses of nodes, with those that lack devices as nodes on which preemption may
// help, if pods of a lower priority have devices there.
func (p *preempter) resolvable(pod *v1.Pod, statuses *framework.NodeToStatus) *framework.NodeToStatus {
	changed := map[string]*fwk.Status{}
	infos := p.pl.handle.MutableSnapshotSharedLister().NodeInfos()
	statuses.ForEachExplicitNode(func(name string, status *fwk.Status) {
		changed[name] = status
		if status.Plugin() != Name || status.Code() != fwk.UnschedulableAndUnresolvable {
			return
		}
		// Pods of a group may have another priority than they say.
		if info, err := infos.Get(name); err == nil && (p.pl.features.EnableGenericWorkload || hasDevicesBelow(info, corev1helpers.PodPriority(pod))) {
			changed[name] = fwk.NewStatus(fwk.Unschedulable, status.Reasons()...).WithPlugin(Name)
		}
	})
	return framework.NewNodeToStatus(changed, statuses.AbsentNodesStatus())
}

func hasDevicesBelow(info fwk.NodeInfo, priority int32) bool {
	return slices.ContainsFunc(info.GetPods(), func(on fwk.PodInfo) bool {
		return preemption.UsesDevices(on.GetPod()) && corev1helpers.PodPriority(on.GetPod()) < priority
	})
}

// promise holds what was found on the node, and says so.
func (p *preempter) promise(ctx context.Context, t *preemptionTrial, node string) {
	t.mutex.Lock()
	found := t.found[node]
	t.mutex.Unlock()
	if found == nil {
		// Extenders may name what we did not look at.
		return
	}
	logger := klog.FromContext(ctx)
	p.pl.metrics.ObserveVictims(len(found.pods))
	if len(found.devices) == 0 {
		// Its claims have their devices; it was about something else.
		return
	}
	logger.Info("Devices are held for a pod for which others are evicted", "pod", klog.KObj(t.pod), "node", klog.KRef("", node),
		"devices", namesOf(found.devices), "victims", klog.KObjSlice(found.pods), "cost", found.cost, "exact", found.exact)
	timeout := p.args.HoldTimeout.Duration
	for _, victim := range found.pods {
		timeout = max(timeout, p.args.HoldTimeout.Duration+gracePeriod(victim))
	}
	victims := make([]types.UID, len(found.pods))
	for i, victim := range found.pods {
		victims[i] = victim.UID
	}
	p.holds.Keep(hold.Hold{Pod: t.pod, Node: node, Devices: found.devices, Victims: victims, Timeout: timeout, Retry: func() { p.pl.activate(t.pod) }})
	recorder := p.pl.handle.EventRecorder()
	recorder.Eventf(t.pod, nil, v1.EventTypeNormal, "HoldingDevices", "Preempting", "%s",
		fmt.Sprintf("%d pods are evicted for devices %s of node %s, which are held for the pod until then", len(found.pods), namesOf(found.devices), node))
	for _, victim := range found.pods {
		// As in upstream's event, whose pod it is is nobody's business.
		recorder.Eventf(victim, nil, v1.EventTypeNormal, "DevicesPreempted", "Preempting", "%s",
			fmt.Sprintf("evicted for devices of node %s, which a pod of a higher priority wants as a set of %d: %s", node, len(found.devices), namesOf(found.devices)))
	}
}
