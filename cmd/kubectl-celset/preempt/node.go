// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cmd/kubectl-celset/simulate"
)

// trial removes pods from a node in thought.
type trial struct {
	*preempting
	base   *allocator.Allocator
	node   *corev1.Node
	claims []*resourceapi.ResourceClaim
	// victims are all who may go, the most important first.
	victims []*corev1.Pod
	// decisive are the positions of those that use devices.
	decisive []int
	// known is what fits, by the decisive ones that are removed.
	known map[string]bool
}

// on finds out about a node, and adds it to the result. The error is the same for all nodes.
func (p *preempting) on(ctx context.Context, node *corev1.Node, result *Result) error {
	reason, err := p.subject.KeptFrom(node)
	if err != nil {
		return err
	}
	if reason != "" {
		result.Refused = append(result.Refused, Refusal{Node: node.Name, Reason: reason})
		return nil
	}
	t := &trial{preempting: p, node: node, claims: p.state.PendingOn(p.subject, node), known: map[string]bool{}}
	if t.base, err = p.newAllocator(ctx, nil); err != nil {
		return err
	}
	results, err := t.base.Allocate(ctx, node, t.claims)
	switch {
	case err != nil:
		return err
	case len(t.claims) == 0 || results != nil:
		result.Fits = append(result.Fits, node.Name)
		return nil
	}
	if has, err := t.hasDevices(ctx); err != nil || !has {
		return err
	}
	if result.Forbidden != "" {
		return nil
	}
	if t.takeVictims(); len(t.decisive) == 0 {
		result.Refused = append(result.Refused, Refusal{Node: node.Name, Reason: "no pod of a lower priority than the pod's has devices there", evicted: t})
		return nil
	}
	found, err := preemption.Search(ctx, t.whoMayGo(ctx))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		result.Refused = append(result.Refused, Refusal{Node: node.Name, Reason: err.Error()})
	case found == nil:
		result.Refused = append(result.Refused, Refusal{Node: node.Name, Reason: "it would not fit with all pods of a lower priority gone", evicted: t})
	default:
		candidate, err := t.candidate(ctx, found)
		if err != nil {
			return err
		}
		result.Candidates = append(result.Candidates, candidate)
	}
	return nil
}

// hasDevices tells whether the node has a device for any request: if it is not asked for by name, there is
// nothing to be said of one that has none.
func (t *trial) hasDevices(ctx context.Context) (bool, error) {
	if len(t.Nodes) > 0 {
		return true, nil
	}
	requests, err := t.base.RequestDevices(ctx, t.node, t.claims)
	return slices.ContainsFunc(requests, func(r allocator.RequestDevices) bool { return len(r.Matching)+len(r.Failed) > 0 }), err
}

// takeVictims takes all pods of a lower priority, also those without devices: they count for disruption
// budgets in the order of importance.
func (t *trial) takeVictims() {
	for _, pod := range t.onNode[t.node.Name] {
		if preemption.PriorityOf(pod) < t.priority {
			t.victims = append(t.victims, pod)
		}
	}
	slices.SortStableFunc(t.victims, func(a, b *corev1.Pod) int { return preemption.CompareImportance(a, b, t.now) })
	for i, pod := range t.victims {
		if preemption.UsesDevices(pod) {
			t.decisive = append(t.decisive, i)
		}
	}
}

func (t *trial) whoMayGo(ctx context.Context) preemption.Problem {
	problem := preemption.Problem{
		Fits: t.fits, MaxQuestions: preemption.UsualMaxQuestions, Allowed: t.budgets.Allowed(), Decisive: t.decisive, Needs: t.needs(ctx),
	}
	for _, pod := range t.victims {
		problem.Victims = append(problem.Victims, preemption.Victim{preemption.PodOf(pod, t.budgets, t.now)})
	}
	return problem
}

// needs are known of claims that there are.
func (t *trial) needs(ctx context.Context) []preemption.Need {
	if slices.ContainsFunc(t.claims, func(claim *resourceapi.ResourceClaim) bool { return claim.Name == extended.ClaimName }) {
		return nil
	}
	has := make([]sets.Set[structured.DeviceID], len(t.victims))
	for i, victim := range t.victims {
		has[i] = sets.New(t.release.Has(victim)...)
	}
	return preemption.Needs(ctx, t.base, t.node, t.claims, has)
}

// gone are the victims at the positions that use devices.
func (t *trial) gone(removed func(i int) bool) map[types.UID]*corev1.Pod {
	gone := map[types.UID]*corev1.Pod{}
	for _, i := range t.decisive {
		if removed(i) {
			gone[t.victims[i].UID] = t.victims[i]
		}
	}
	return gone
}

func (t *trial) fits(ctx context.Context, removed bitset.Set) (bool, error) {
	var key []byte
	for _, i := range t.decisive {
		if removed.Has(i) {
			key = fmt.Appendf(key, "%d ", i)
		}
	}
	if fits, ok := t.known[string(key)]; ok {
		return fits, nil
	}
	results, err := t.base.Without(t.release.Claims(t.gone(removed.Has))...).Allocate(ctx, t.node, t.claims)
	if err != nil {
		return false, err
	}
	t.known[string(key)] = results != nil
	return results != nil, nil
}

func (t *trial) candidate(ctx context.Context, found *preemption.Found) (Candidate, error) {
	released := t.release.Claims(t.gone(func(i int) bool { return slices.Contains(found.Removed, i) }))
	candidate := Candidate{
		Node: t.node.Name, Exact: found.Exact, cost: found.Cost, Victims: []Victim{}, Claims: []simulate.Claim{},
		Cost: Cost{BudgetViolations: found.Cost.Violations, HighestPriority: found.Cost.Highest, Pods: found.Cost.Pods},
	}
	for _, i := range found.Removed {
		candidate.Victims = append(candidate.Victims, t.victim(t.victims[i], released))
	}
	results, err := t.base.Without(released...).Allocate(ctx, t.node, t.claims)
	for i := range results {
		candidate.Claims = append(candidate.Claims, simulate.ClaimWith(t.claims[i], &results[i]))
	}
	return candidate, err
}

func (t *trial) victim(pod *corev1.Pod, released []*resourceapi.ResourceClaim) Victim {
	victim := Victim{Pod: klog.KObj(pod).String(), Priority: preemption.PriorityOf(pod), Devices: []string{}, Ending: pod.DeletionTimestamp != nil}
	for _, claim := range preemption.ClaimsOf(pod, t.claim) {
		i := slices.IndexFunc(released, func(other *resourceapi.ResourceClaim) bool { return other.UID == claim.UID })
		if i < 0 {
			continue
		}
		for _, has := range released[i].Status.Allocation.Devices.Results {
			victim.Devices = append(victim.Devices, structured.MakeDeviceID(has.Driver, has.Pool, has.Device).String())
		}
	}
	return victim
}
