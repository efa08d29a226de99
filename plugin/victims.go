// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/cel/device/bitset"
)

// foundVictims are who has to go from a node, and what the pod gets then.
type foundVictims struct {
	pods    []*v1.Pod
	devices []resourceapi.DeviceRequestAllocationResult
	cost    preemption.Cost
	exact   bool
}

// removal removes victims from a node in thought, and adds them back.
type removal struct {
	*preempter
	ctx       context.Context
	state     fwk.CycleState
	preemptor *v1.Pod
	node      fwk.NodeInfo
	trial     *preemptionTrial
	victims   []*upstream.DomainVictim
	removed   bitset.Set
	failed    *fwk.Status
}

// SelectVictimsOnNode implements [upstream.Interface]: of the pods of a lower priority on the node those
// whose removal lets the preemptor fit and costs least. State and node are the caller's copies.
func (p *preempter) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *v1.Pod, node fwk.NodeInfo,
	possible []*upstream.DomainVictim, budgets []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	simulated := simulationIn(state)
	if simulated == nil {
		return p.DefaultPreemption.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	}
	if over := simulated.attempt.Over(); over != nil {
		return nil, 0, fwk.NewStatus(fwk.Unschedulable, over.Error())
	}
	victims := slices.DeleteFunc(slices.Clone(possible), func(victim *upstream.DomainVictim) bool { return !p.mayGo(victim, preemptor) })
	if len(victims) == 0 {
		return nil, 0, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "No preemption victims found for incoming pod")
	}
	slices.SortStableFunc(victims, func(a, b *upstream.DomainVictim) int {
		switch {
		case p.MoreImportantVictim(a, b):
			return -1
		case p.MoreImportantVictim(b, a):
			return 1
		}
		return 0
	})
	r := &removal{preempter: p, ctx: ctx, state: state, preemptor: preemptor, node: node, trial: simulated.preemptionTrial, victims: victims, removed: bitset.New(len(victims))}
	found, err := preemption.Search(ctx, r.problem(budgets))
	switch {
	case err != nil:
		return nil, 0, fwk.NewStatus(fwk.Unschedulable, err.Error())
	case found == nil:
		return nil, 0, r.failed
	}
	removed := bitset.New(len(victims))
	for _, i := range found.Removed {
		removed.Add(i)
	}
	// Once more, to have what was allocated for these.
	if fits, err := r.fits(ctx, removed); err != nil {
		return nil, 0, fwk.NewStatus(fwk.Unschedulable, err.Error())
	} else if !fits {
		return nil, 0, fwk.NewStatus(fwk.Unschedulable, "the node fits no longer")
	}
	result := &foundVictims{cost: found.Cost, exact: found.Exact}
	for _, i := range found.Removed {
		for _, info := range victims[i].Pods() {
			result.pods = append(result.pods, info.GetPod())
		}
	}
	r.trial.keep(node.Node().Name, result)
	return result.pods, found.Cost.Violations, nil
}

// keep remembers what was found on a node, with what was allocated there last.
func (t *preemptionTrial) keep(node string, found *foundVictims) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for i := range t.results[node] {
		found.devices = append(found.devices, t.results[node][i].Devices.Results...)
	}
	t.found[node] = found
}

// mayGo tells whether the priorities allow it, on all nodes where the victim has pods.
func (p *preempter) mayGo(victim *upstream.DomainVictim, preemptor *v1.Pod) bool {
	if victim.Priority() >= corev1helpers.PodPriority(preemptor) {
		return false
	}
	for _, node := range victim.AffectedNodes() {
		if !p.IsEligiblePod(node, victim, preemptor) {
			return false
		}
	}
	return true
}

func (r *removal) problem(budgets []*policy.PodDisruptionBudget) preemption.Problem {
	counting := preemption.NewBudgets(budgets)
	problem := preemption.Problem{Fits: r.fits, Over: r.trial.attempt.Over, MaxQuestions: preemption.UsualMaxQuestions, Allowed: counting.Allowed()}
	now := time.Now()
	for i, victim := range r.victims {
		var pods preemption.Victim
		for _, info := range victim.Pods() {
			pod := info.GetPod()
			pods = append(pods, preemption.PodOf(pod, counting, now))
			if preemption.UsesDevices(pod) && !slices.Contains(problem.Decisive, i) {
				problem.Decisive = append(problem.Decisive, i)
			}
		}
		problem.Victims = append(problem.Victims, pods)
	}
	problem.Needs = r.needs()
	return problem
}

// fits runs all filters with these victims gone.
func (r *removal) fits(ctx context.Context, removed bitset.Set) (bool, error) {
	for i, victim := range r.victims {
		var err error
		switch {
		case removed.Has(i) && !r.removed.Has(i):
			r.removed.Add(i)
			err = r.move(victim, r.node.RemovePod, r.pl.handle.RunPreFilterExtensionRemovePod)
		case !removed.Has(i) && r.removed.Has(i):
			r.removed.Remove(i)
			err = r.move(victim, nil, r.pl.handle.RunPreFilterExtensionAddPod)
		}
		if err != nil {
			return false, err
		}
	}
	if over := r.trial.attempt.Over(); over != nil {
		// What does not fit for lack of time would have others evicted.
		return false, over
	}
	status := r.pl.handle.RunFilterPluginsWithNominatedPods(ctx, r.state, r.preemptor, r.node)
	switch {
	case status.IsSuccess():
		return true, nil
	case !status.IsRejected():
		return false, status.AsError()
	}
	if over := r.trial.attempt.Over(); over != nil {
		return false, over
	}
	if r.failed == nil {
		// The first to be asked about is whether it would do if all were gone.
		r.failed = status
	}
	return false, nil
}

// move removes the pods of a victim from the node, or adds them back, and tells the plugins. Pods of a
// group that are on other nodes stay in what is known of those: filters are run for this one.
func (r *removal) move(victim *upstream.DomainVictim, remove func(klog.Logger, *v1.Pod) error,
	tell func(context.Context, fwk.CycleState, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *fwk.Status) error {
	for _, info := range victim.Pods() {
		on := victim.AffectedNodes()[info.GetPod().Spec.NodeName]
		if info.GetPod().Spec.NodeName == r.node.Node().Name {
			on = r.node
			if remove == nil {
				on.AddPodInfo(info)
			} else if err := remove(klog.FromContext(r.ctx), info.GetPod()); err != nil {
				return err
			}
		}
		if status := tell(r.ctx, r.state, r.preemptor, info, on); !status.IsSuccess() {
			return status.AsError()
		}
	}
	return nil
}

// needs are known of claims that are there already.
func (r *removal) needs() []preemption.Need {
	c := r.trial.claims
	if len(c.unallocated) == 0 || c.extended != nil {
		return nil
	}
	has := make([]sets.Set[structured.DeviceID], len(r.victims))
	for i, victim := range r.victims {
		has[i] = sets.New[structured.DeviceID]()
		for _, info := range victim.Pods() {
			has[i].Insert(r.trial.release.Has(info.GetPod())...)
		}
	}
	return preemption.Needs(r.ctx, r.trial.base, r.node.Node(), c.unallocated, has)
}

// gracePeriod is how long a pod may take to end.
func gracePeriod(pod *v1.Pod) time.Duration {
	seconds := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(min(seconds, math.MaxInt32)) * time.Second
}
