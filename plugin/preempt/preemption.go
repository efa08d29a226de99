// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/preemption"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/hold"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/pendingwrites"
	"github.com/celset/celset/plugin/preparation"
)

// Preemption for devices runs in PostFilter, for a pod with claims that fits nowhere, if the profile enables upstream's plugin
// DefaultPreemption. Upstream's code looks for nodes, compares them, evicts and nominates. The result differs from
// DefaultPreemption in these points:
//
//  1. Nodes that lack devices are candidates, too. A simulation finds out whether the pod fits once victims have freed their
//     devices (simulation.go).
//  2. The cheapest set of pods on a node is chosen (victims.go).
//  3. The devices are held before the first eviction (evicting.go). While the preemptor waits for them, no other pods are
//     evicted for it (waiting.go).
//
// DefaultPreemption itself does not run afterwards, because it would evict more pods for other resources.

// Preemption evicts pods for the pods of a profile. [NoPreemption] implements it if the profile does not preempt for devices.
type Preemption interface {
	// IsPreempting reports whether evictions for the pod are in progress.
	IsPreempting(pod *v1.Pod) bool
	// Preempt looks for pods to evict. If did is true, no other plugin may preempt for the pod, and PostFilter returns status.
	Preempt(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader, c *cycle.PodClaims) (result *fwk.PostFilterResult, status *fwk.Status, did bool)
	// Extensions returns the plugin's PreFilterExtensions.
	Extensions() fwk.PreFilterExtensions
	// Simulating returns a context for upstream's Filter. If the cycle state contains a simulation, Filter then calls the
	// simulation instead of the allocator.
	Simulating(ctx context.Context, state fwk.CycleState) context.Context
}

// NoPreemption never evicts pods.
type NoPreemption struct{}

// IsPreempting implements [Preemption].
func (NoPreemption) IsPreempting(*v1.Pod) bool { return false }

// Extensions implements [Preemption].
func (NoPreemption) Extensions() fwk.PreFilterExtensions { return nil }

// Preempt implements [Preemption].
func (NoPreemption) Preempt(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeToStatusReader, *cycle.PodClaims) (*fwk.PostFilterResult, *fwk.Status, bool) {
	return nil, nil, false
}

// Simulating implements [Preemption].
func (NoPreemption) Simulating(ctx context.Context, _ fwk.CycleState) context.Context { return ctx }

// Preempter implements [Preemption] with upstream's preemption and holds.
type Preempter struct {
	*defaultpreemption.DefaultPreemption
	Args       *configv1alpha1.DevicePreemption
	Handle     fwk.Handle
	Metrics    *metrics.Metrics
	Name       string
	Allocators *cycle.Allocators
	Prepared   preparation.Claims
	Holding    *Holding
	Writes     pendingwrites.Pending
	evictions  evictions
	// isWanted reports whether the profile enables upstream's plugin DefaultPreemption.
	isWanted func() bool
}

// Start creates upstream's preemption, which calls the methods of p. The handle that upstream gets is wrapped, so that
// evictions have the UID of the victim as a precondition.
func (p *Preempter) Start(ctx context.Context, handle fwk.Handle) error {
	upstream, err := defaultpreemption.New(ctx, &config.DefaultPreemptionArgs{
		MinCandidateNodesPercentage: *p.Args.MinCandidateNodesPercentage, MinCandidateNodesAbsolute: *p.Args.MinCandidateNodesAbsolute,
	}, evictingHandle{handle}, p.Allocators.Resolver.Features)
	if err != nil {
		return err
	}
	p.DefaultPreemption = upstream
	upstream.Evaluator.Interface = p
	upstream.Executor.PreemptPod = p.evicting(upstream.Executor.PreemptPod)
	p.isWanted = func() bool {
		lister, is := p.Handle.(interface{ ListPlugins() *config.Plugins })
		return is && slices.ContainsFunc(lister.ListPlugins().PostFilter.Enabled, func(plugin config.Plugin) bool { return plugin.Name == names.DefaultPreemption })
	}
	return nil
}

// IsPreempting implements [Preemption].
func (p *Preempter) IsPreempting(pod *v1.Pod) bool {
	return p.Executor.IsPodRunningPreemption(pod.UID)
}

// Preempt implements [Preemption].
func (p *Preempter) Preempt(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader, c *cycle.PodClaims) (result *fwk.PostFilterResult, status *fwk.Status, did bool) {
	statuses, is := nodes.(*framework.NodeToStatus)
	if !is || state.IsPodGroupSchedulingCycle() || !p.isWanted() || c.Err != nil {
		return nil, nil, false
	}
	defer c.Attempt.Progress()
	result, status, resumed := p.wait(ctx, pod, c, statuses)
	if status != nil {
		p.Metrics.ObservePreemption(metrics.PreemptionNotEligible)
		return result, status, true
	}
	if len(c.All()) == 0 {
		return nil, nil, false
	}
	// The filters may have used up the attempt's budget, so the trial gets its own.
	budget := allocator.NewAttemptBudget(p.Allocators.Budget)
	c.Attempt.OnOver(budget.End)
	trial, err := p.newTrial(ctx, pod, c, budget)
	if err != nil {
		return nil, fwk.AsStatus(err), true
	}
	e := &eviction{trial: trial, resumed: resumed}
	p.evictions.begin(e, p.Executor.IsPodRunningPreemption)
	candidates := p.resolvable(pod, statuses)
	if resumed != nil {
		trial.resume(resumed)
		candidates = framework.NewNodeToStatus(map[string]*fwk.Status{resumed.Node: fwk.NewStatus(fwk.Unschedulable)}, fwk.NewStatus(fwk.UnschedulableAndUnresolvable))
	}
	state.Write(simulationKey, &simulation{preemptionTrial: trial, removed: map[types.UID]*v1.Pod{}})
	defer state.Delete(simulationKey)
	result, status = p.PostFilter(context.WithValue(ctx, trialInContext{}, trial), state, pod, candidates)
	switch {
	case trial.fits():
		// Devices became free since Filter ran. The event that freed them makes the scheduler retry the pod.
		result, status = nil, unresolvable("preemption: "+errFitsAlready.Error())
		p.Metrics.ObservePreemption(metrics.PreemptionNotEligible)
	case status.IsSuccess():
		p.holdDevices(ctx, e, result.NominatedNodeName)
		p.recordLater(ctx, e, result.NominatedNodeName)
		p.Metrics.ObservePreemption(metrics.PreemptionNominated)
	case status.Code() == fwk.Error:
		p.Metrics.ObservePreemption(metrics.PreemptionFailed)
	case result == nil:
		p.Metrics.ObservePreemption(metrics.PreemptionNotEligible)
	default:
		p.Metrics.ObservePreemption(metrics.PreemptionNotHelpful)
	}
	if resumed != nil && status.IsRejected() && !trial.fits() && c.Attempt.Over() == nil {
		// The preemptor would not fit even after the remaining victims were evicted.
		p.Holding.End(pod.UID, hold.Lost)
	}
	if status.Code() == fwk.Unschedulable {
		status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, status.Reasons()...)
	}
	return result, status, true
}

// PodEligibleToPreemptOthers implements [upstream.Interface]. It does not check for terminating victims, because Preempter.wait
// has already decided whether the pod waits for them. Upstream would refuse while any victim on the nominated node is
// terminating.
func (p *Preempter) PodEligibleToPreemptOthers(_ context.Context, pod *v1.Pod, _ *fwk.Status) (bool, string) {
	if ptr.Deref(pod.Spec.PreemptionPolicy, v1.PreemptLowerPriority) == v1.PreemptNever {
		return false, "not eligible due to preemptionPolicy=Never."
	}
	return true, ""
}

// trialInContext is the context key for the *preemptionTrial.
type trialInContext struct{}

// OrderedScoreFuncs implements [upstream.Interface]. It prefers the nodes with the cheapest victims. Unlike upstream, it does
// not count victims that are already terminating.
func (p *Preempter) OrderedScoreFuncs(ctx context.Context, candidates map[string]*extenderv1.Victims) []func(node string) int64 {
	trial, is := ctx.Value(trialInContext{}).(*preemptionTrial)
	if !is {
		return nil
	}
	all := map[string]*foundVictims{}
	for node := range candidates {
		found := trial.foundOn(node)
		if found == nil {
			return nil
		}
		all[node] = found
	}
	return []func(string) int64{func(node string) int64 {
		better := int64(0)
		for _, other := range all {
			if other.compare(all[node]) < 0 {
				better++
			}
		}
		return -better
	}}
}

// newTrial returns a trial whose searches share the budget. The searches ignore preferences, because the real search follows
// when the devices are free.
func (p *Preempter) newTrial(ctx context.Context, pod *v1.Pod, c *cycle.PodClaims, budget *allocator.AttemptBudget) (*preemptionTrial, error) {
	kept := p.Holding.UnavailableTo(pod, c)
	state, err := p.Allocators.AllocatedState(ctx)
	if err != nil {
		return nil, err
	}
	kept = append(kept, p.Writes.InUse(pod, c.Own(), p.Holding.Activate)...)
	allocator.AddAllocated(state, kept, p.Allocators.Features())
	prepared, err := c.AllPrepared(ctx, p.Prepared)
	if err != nil {
		return nil, err
	}
	base, err := p.Allocators.NewAllocator(ctx, prepared, cycle.Material{Allocated: state}, allocator.WithoutPreferences(), allocator.WithAttemptBudget(budget))
	if err != nil {
		return nil, err
	}
	t := &preemptionTrial{
		holding: p.Holding, pod: pod, claims: c, base: base,
		release: preemption.Release{
			Claim: p.Allocators.Resolver.Claim, Pending: p.Allocators.Resolver.Manager.ResourceClaims().GetPendingAllocation,
			Own: sets.New[types.UID](), Held: sets.New(preemption.DevicesOf(kept)...), Users: p.usersOn(), Exists: p.Holding.exists,
		},
		promised: p.Holding.PromisedTo(pod), results: map[string][]hold.Claim{}, found: map[string]*foundVictims{},
	}
	for _, claim := range append(p.Allocators.Resolver.ClaimsOf(pod), c.All()...) {
		t.release.Own.Insert(claim.UID)
	}
	return t, nil
}

// usersOn returns a function that maps each claim used by a pod on a node to the UIDs of all pods that use the claim. Unlike
// the status of a claim, the result includes pods that are not bound yet. Pods on other nodes count if they use the claim by
// name.
func (p *Preempter) usersOn() func(node string) map[types.UID][]types.UID {
	infos := func() fwk.NodeInfoLister { return p.Handle.MutableSnapshotSharedLister().NodeInfos() }
	add := func(users map[types.UID][]types.UID, pod *v1.Pod) {
		for _, claim := range p.Allocators.Resolver.ClaimsOf(pod) {
			users[claim.UID] = append(users[claim.UID], pod.UID)
		}
	}
	sharers := sync.OnceValue(func() map[types.UID][]types.UID {
		users := map[types.UID][]types.UID{}
		nodes, err := infos().List()
		if err != nil {
			return users
		}
		for _, info := range nodes {
			for _, on := range info.GetPods() {
				if pod := on.GetPod(); namesClaim(pod) {
					add(users, pod)
				}
			}
		}
		return users
	})
	var known sync.Map
	return func(node string) map[types.UID][]types.UID {
		if users, ok := known.Load(node); ok {
			return users.(map[types.UID][]types.UID)
		}
		users := map[types.UID][]types.UID{}
		if info, err := infos().Get(node); err == nil {
			for _, on := range info.GetPods() {
				add(users, on.GetPod())
			}
		}
		for claim := range users {
			users[claim] = append(users[claim], sharers()[claim]...)
		}
		known.Store(node, users)
		return users
	}
}

// namesClaim reports whether the pod uses a claim by name. Other pods can use such a claim, too. Only one pod uses a claim from
// a template.
func namesClaim(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(claim v1.PodResourceClaim) bool { return claim.ResourceClaimName != nil })
}

// namesOf returns the device names without driver and pool.
func namesOf(results []resourceapi.DeviceRequestAllocationResult) string {
	names := make([]string, len(results))
	for i := range results {
		names[i] = results[i].Device
	}
	return strings.Join(names, ", ")
}

// resolvable returns the statuses of nodes for upstream's preemption, which only tries nodes with status Unschedulable. It
// gives this status to nodes that lack devices if lower-priority pods there use devices.
func (p *Preempter) resolvable(pod *v1.Pod, statuses *framework.NodeToStatus) *framework.NodeToStatus {
	changed := map[string]*fwk.Status{}
	infos := p.Handle.MutableSnapshotSharedLister().NodeInfos()
	statuses.ForEachExplicitNode(func(name string, status *fwk.Status) {
		changed[name] = status
		if status.Plugin() != p.Name || status.Code() != fwk.UnschedulableAndUnresolvable {
			return
		}
		// With workload-aware scheduling, a pod of a group may have another priority than its spec says, so every node is tried.
		if info, err := infos.Get(name); err == nil && (p.Allocators.Resolver.Features.EnableGenericWorkload || hasDevicesBelow(info, corev1helpers.PodPriority(pod))) {
			changed[name] = fwk.NewStatus(fwk.Unschedulable, status.Reasons()...).WithPlugin(p.Name)
		}
	})
	return framework.NewNodeToStatus(changed, statuses.AbsentNodesStatus())
}

func hasDevicesBelow(info fwk.NodeInfo, priority int32) bool {
	return slices.ContainsFunc(info.GetPods(), func(on fwk.PodInfo) bool {
		return preemption.UsesDevices(on.GetPod()) && corev1helpers.PodPriority(on.GetPod()) < priority
	})
}
