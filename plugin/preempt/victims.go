// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/plugin/hold"
)

// foundVictims is the set of pods to evict from a node, and the devices that the preemptor then gets.
type foundVictims struct {
	// pods includes pods that are already terminating. cost does not count these pods.
	pods   []*v1.Pod
	claims []hold.Claim
	// frees has the UIDs of the claims that are deallocated when the pods are gone.
	frees []types.UID
	cost  preemption.Cost
	exact bool
	// late is set if no set without pods that end late was found.
	late bool
}

// compare returns a negative number if evicting f is better than evicting other, a set of another node.
func (f *foundVictims) compare(other *foundVictims) int {
	switch {
	case f.late == other.late:
		return f.cost.Compare(other.cost)
	case f.late:
		return 1
	default:
		return -1
	}
}

// removal removes possible victims from a copy of a node, adds them back, and tests whether the preemptor fits.
type removal struct {
	*Preempter
	ctx       context.Context
	state     fwk.CycleState
	preemptor *v1.Pod
	node      fwk.NodeInfo
	trial     *preemptionTrial
	// victims are the pods that the search may remove. free holds terminating pods, which cost nothing and are removed first.
	victims, free []*upstream.DomainVictim
	removed       bitset.Set
	failed        *fwk.Status
}

// SelectVictimsOnNode implements [upstream.Interface]. It chooses the cheapest set of lower-priority pods without which the
// preemptor fits. Terminating pods that end soon count as gone. Pods that end late are chosen only if no other set helps. The
// caller passes copies of state and node.
func (p *Preempter) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *v1.Pod, node fwk.NodeInfo,
	possible []*upstream.DomainVictim, budgets []*policy.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	simulated := simulationIn(state)
	if simulated == nil {
		return p.DefaultPreemption.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	}
	if over := simulated.claims.Attempt.Over(); over != nil {
		return nil, 0, fwk.NewStatus(fwk.Unschedulable, over.Error())
	}
	free, live, late := p.candidates(possible, preemptor, simulated.preemptionTrial)
	if len(free)+len(live)+len(late) == 0 {
		return nil, 0, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "No preemption victims found for incoming pod")
	}
	r := &removal{Preempter: p, ctx: ctx, state: state, preemptor: preemptor, node: node, trial: simulated.preemptionTrial, free: free}
	for _, ending := range free {
		if err := r.remove(ending); err != nil {
			return nil, 0, fwk.AsStatus(err)
		}
	}
	found, err := r.search(live, budgets)
	withLate := err == nil && found == nil && len(late) > 0
	if withLate {
		found, err = r.search(slices.Concat(live, late), budgets)
	}
	var result *foundVictims
	if err == nil && found != nil {
		result, err = r.result(found)
	}
	switch {
	case err != nil:
		return nil, 0, fwk.NewStatus(fwk.Unschedulable, err.Error())
	case found == nil:
		return nil, 0, r.failed
	}
	result.late = withLate
	r.trial.store(node.Node().Name, result)
	return result.pods, found.Cost.Violations, nil
}

// candidates returns the possible victims in three lists. free holds terminating pods that end soon and count as gone. late
// holds pods that end late, or whose grace period is long. live holds the other pods, and terminating victims of another
// preemptor: they cost as much as that preemptor, which would have to evict other pods. If a hold is resumed, only the hold's
// victims are returned.
func (p *Preempter) candidates(possible []*upstream.DomainVictim, preemptor *v1.Pod, t *preemptionTrial) (free, live, late []*upstream.DomainVictim) {
	now := time.Now()
	for _, victim := range possible {
		if !p.mayGo(victim, preemptor) {
			continue
		}
		ending, soon, promised, named, slow := true, true, false, t.only == nil, false
		for _, info := range victim.Pods() {
			pod := info.GetPod()
			ending = ending && pod.DeletionTimestamp != nil
			soon = soon && (t.only.Has(pod.UID) || endsSoon(pod, now, p.Args.HoldTimeout.Duration))
			named = named || t.only.Has(pod.UID)
			slow = slow || !t.only.Has(pod.UID) && gracePeriod(pod) > p.Args.HoldTimeout.Duration
			_, is := t.promised[pod.UID]
			promised = promised || is
		}
		switch {
		case ending && soon && promised && named:
			live = append(live, victim)
		case ending && soon:
			free = append(free, victim)
		case !named:
		case ending, slow:
			late = append(late, victim)
		default:
			live = append(live, victim)
		}
	}
	return free, live, late
}

// overdue is the time after the grace period during which a terminating pod still counts as ending soon.
const overdue = 30 * time.Second

// endsSoon reports whether a pod is terminating and is expected to end within the given time. It is false for an overdue pod,
// which may have a finalizer that is never removed.
func endsSoon(pod *v1.Pod, now time.Time, within time.Duration) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(overdue)) && pod.DeletionTimestamp.Time.Before(now.Add(within))
}

// search returns the cheapest set of the given victims, or nil if the preemptor doesn't fit even without all of them.
func (r *removal) search(victims []*upstream.DomainVictim, budgets []*policy.PodDisruptionBudget) (*preemption.Found, error) {
	for i, victim := range r.victims {
		if r.removed.Has(i) {
			if err := r.add(victim); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(victims, func(a, b *upstream.DomainVictim) int {
		switch {
		case r.MoreImportantVictim(a, b):
			return -1
		case r.MoreImportantVictim(b, a):
			return 1
		}
		return 0
	})
	r.victims, r.removed = victims, bitset.New(len(victims))
	return preemption.Search(r.ctx, r.problem(budgets))
}

// result removes the found victims from the node and runs the filters once more, so that the trial's last allocation is the one
// for these victims.
func (r *removal) result(found *preemption.Found) (*foundVictims, error) {
	removed := bitset.New(len(r.victims))
	for _, i := range found.Removed {
		removed.Add(i)
	}
	if err := r.set(removed); err != nil {
		return nil, err
	}
	// A terminating pod becomes a victim only if the preemptor doesn't fit while the pod is there.
	var needed []*upstream.DomainVictim
	for _, ending := range r.free {
		if err := r.add(ending); err != nil {
			return nil, err
		}
		fits, err := r.runFilters()
		if err != nil {
			return nil, err
		}
		if fits {
			continue
		}
		if err := r.remove(ending); err != nil {
			return nil, err
		}
		needed = append(needed, ending)
	}
	if fits, err := r.runFilters(); err != nil {
		return nil, err
	} else if !fits {
		return nil, errFitsNoLonger
	}
	for _, i := range found.Removed {
		needed = append(needed, r.victims[i])
	}
	result := &foundVictims{cost: found.Cost, exact: found.Exact}
	for _, victim := range needed {
		for _, info := range victim.Pods() {
			result.pods = append(result.pods, info.GetPod())
		}
	}
	if s := simulationIn(r.state); s != nil {
		for _, claim := range r.trial.release.Claims(s.removed) {
			result.frees = append(result.frees, claim.UID)
		}
	}
	return result, nil
}

// errFitsNoLonger is the error if devices or the node changed while victims were chosen, so that the preemptor no longer fits.
var errFitsNoLonger = errors.New("the pod no longer fits on the node")

// store stores the victims on a node, with the allocation that the last search there found.
func (t *preemptionTrial) store(node string, found *foundVictims) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	found.claims = t.results[node]
	t.found[node] = found
	if len(found.pods) == 0 {
		t.fitsAlready = true
	}
}

// mayGo reports whether the preemptor's priority permits evicting the victim. A victim may be a group with pods on several
// nodes.
func (p *Preempter) mayGo(victim *upstream.DomainVictim, preemptor *v1.Pod) bool {
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
	problem := preemption.Problem{Fits: r.fits, Over: r.trial.claims.Attempt.Over, MaxQuestions: preemption.UsualMaxQuestions, Allowed: counting.Allowed()}
	now := time.Now()
	for i, victim := range r.victims {
		var pods preemption.Victim
		for _, info := range victim.Pods() {
			pod := info.GetPod()
			counts := preemption.PodOf(pod, counting, now)
			if promised, is := r.trial.promised[pod.UID]; is {
				counts.Priority = max(counts.Priority, promised)
			}
			pods = append(pods, counts)
			if preemption.UsesDevices(pod) && !slices.Contains(problem.Decisive, i) {
				problem.Decisive = append(problem.Decisive, i)
			}
		}
		problem.Victims = append(problem.Victims, pods)
	}
	problem.Needs = r.needs()
	return problem
}

// fits reports whether the preemptor passes all filters without the victims in removed.
func (r *removal) fits(_ context.Context, removed bitset.Set) (bool, error) {
	if err := r.set(removed); err != nil {
		return false, err
	}
	return r.runFilters()
}

// set removes the victims in removed from the node, and adds all other victims back.
func (r *removal) set(removed bitset.Set) error {
	for i, victim := range r.victims {
		var err error
		switch {
		case removed.Has(i) && !r.removed.Has(i):
			r.removed.Add(i)
			err = r.remove(victim)
		case !removed.Has(i) && r.removed.Has(i):
			r.removed.Remove(i)
			err = r.add(victim)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *removal) remove(victim *upstream.DomainVictim) error {
	return r.move(victim, r.node.RemovePod, r.Handle.RunPreFilterExtensionRemovePod)
}

func (r *removal) add(victim *upstream.DomainVictim) error {
	return r.move(victim, nil, r.Handle.RunPreFilterExtensionAddPod)
}

// runFilters reports whether the preemptor fits on the node without the victims removed so far. After an error, the search for
// victims must end.
func (r *removal) runFilters() (bool, error) {
	if err := r.Holding.gone(r.trial.pod); err != nil {
		return false, err
	}
	if over := r.trial.claims.Attempt.Over(); over != nil {
		// The attempt's time is over. An interrupted search must not lead to evictions.
		return false, over
	}
	status := r.Handle.RunFilterPluginsWithNominatedPods(r.ctx, r.state, r.preemptor, r.node)
	switch {
	case status.IsSuccess():
		return true, nil
	case !status.IsRejected():
		return false, status.AsError()
	}
	if over := r.trial.claims.Attempt.Over(); over != nil {
		return false, over
	}
	if r.failed == nil {
		// In the first call, all victims are removed. If the filters still reject the preemptor, their status says why no
		// evictions help on this node.
		r.failed = status
	}
	return false, nil
}

// move removes the pods of a victim from the node or adds them back, and notifies the plugins. If the victim is a group, its
// pods on other nodes stay in the NodeInfos there, because the filters run for this node only.
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

// needs returns how many devices the unallocated claims lack ([preemption.Needs]). It returns nil if the pod requests extended
// resources, because the claim for these does not exist yet.
func (r *removal) needs() []preemption.Need {
	c := r.trial.claims
	if len(c.Unallocated) == 0 || c.Extended != nil {
		return nil
	}
	has := make([]sets.Set[structured.DeviceID], len(r.victims))
	for i, victim := range r.victims {
		has[i] = sets.New[structured.DeviceID]()
		for _, info := range victim.Pods() {
			has[i].Insert(r.trial.release.Has(info.GetPod())...)
		}
	}
	a := r.trial.base
	if len(r.free) > 0 {
		gone := map[types.UID]*v1.Pod{}
		for _, ending := range r.free {
			for _, info := range ending.Pods() {
				gone[info.GetPod().UID] = info.GetPod()
			}
		}
		a = a.Without(r.trial.release.Claims(gone)...)
	}
	return preemption.Needs(r.ctx, a, r.node.Node(), c.Unallocated, has)
}

// maxGrace limits how much the victims' grace periods extend a hold, as a multiple of holdTimeout. The hold also reserves
// devices that are free already, which stay unused meanwhile.
const maxGrace = 12

// gracePeriod returns the grace period of a pod. For a terminating pod, it returns the time left until the end of that period.
func gracePeriod(pod *v1.Pod) time.Duration {
	if pod.DeletionTimestamp != nil {
		return max(time.Until(pod.DeletionTimestamp.Time), 0)
	}
	seconds := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(min(seconds, math.MaxInt32)) * time.Second
}
