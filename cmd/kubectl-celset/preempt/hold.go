// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/cmd/kubectl-celset/simulate"
)

// Holds are in the memory of the scheduler. What they are is found out as a scheduler that starts does
// it: for the pods that are nominated to a node, the most important first, what they would get there when
// the pods of a lower priority are gone that are ending there.

// hold is what is held for a pod, unless failed says why nothing is.
type hold struct {
	pod     *corev1.Pod
	claims  []simulate.Claim
	devices []resourceapi.DeviceRequestAllocationResult
	failed  error
}

// hold finds out what is held for pods of the scheduler that the pod is for. Who waits for no devices
// holds none.
func (p *preempting) hold(ctx context.Context) {
	var nominated []*corev1.Pod
	for _, pod := range p.state.Pods {
		if preemption.IsNominated(pod) && schedulerOf(pod) == schedulerOf(p.subject.Pod) {
			nominated = append(nominated, pod)
		}
	}
	slices.SortFunc(nominated, preemption.CompareNominated)
	for _, pod := range nominated {
		found := &hold{pod: pod}
		if found.failed = p.holdFor(ctx, found); found.failed != nil || len(found.devices) > 0 {
			p.holds = append(p.holds, found)
		}
	}
}

func schedulerOf(pod *corev1.Pod) string {
	if pod.Spec.SchedulerName == "" {
		return corev1.DefaultSchedulerName
	}
	return pod.Spec.SchedulerName
}

func (p *preempting) holdFor(ctx context.Context, found *hold) error {
	subject, err := p.state.SubjectOf(found.pod)
	if err != nil || len(subject.Pending()) == 0 {
		return err
	}
	node := p.state.Node(found.pod.Status.NominatedNodeName)
	if node == nil {
		return errors.New("the node is not known")
	}
	pending := p.state.PendingOn(subject, node)
	held := p.heldFrom(found.pod)
	base, err := p.newAllocator(ctx, held)
	if err != nil {
		return err
	}
	release := p.releaseFor(subject)
	release.Held.Insert(preemption.DevicesOf(held)...)
	gone := map[types.UID]*corev1.Pod{}
	for _, ending := range p.onNode[node.Name] {
		if preemption.MakesRoom(ending, found.pod) {
			gone[ending.UID] = ending
		}
	}
	results, err := base.Without(release.Claims(gone)...).Allocate(ctx, node, pending)
	for i := range results {
		found.devices = append(found.devices, results[i].Devices.Results...)
		found.claims = append(found.claims, simulate.ClaimWith(pending[i], &results[i]))
	}
	return err
}

// heldFrom are the results that a pod may not take: those of other pods of the same or a higher priority.
func (p *preempting) heldFrom(pod *corev1.Pod) []resourceapi.DeviceRequestAllocationResult {
	var results []resourceapi.DeviceRequestAllocationResult
	for _, held := range p.holds {
		if held.pod != pod && preemption.PriorityOf(held.pod) >= preemption.PriorityOf(pod) {
			results = append(results, held.devices...)
		}
	}
	return results
}

// takeHeld has what is held for others count as in use from now on: as that of claims in their names.
func (p *preempting) takeHeld() {
	p.problem.Allocated = slices.Clone(p.problem.Allocated)
	for _, held := range p.holds {
		if held.pod == p.subject.Pod || preemption.PriorityOf(held.pod) < p.priority {
			continue
		}
		claim := &resourceapi.ResourceClaim{}
		claim.Namespace, claim.Name = held.pod.Namespace, nameOfHold(held.pod)
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		claim.Status.Allocation.Devices.Results = held.devices
		p.problem.Allocated = append(p.problem.Allocated, claim)
		p.release.Held.Insert(preemption.DevicesOf(held.devices)...)
	}
}

// nameOfHold is no name that a claim can have.
func nameOfHold(pod *corev1.Pod) string { return "<held for pod " + pod.Name + ">" }

// heldByOthers are the holds for the result, of all pods and in the order in which they came about.
func (p *preempting) heldByOthers() []Hold {
	var all []Hold
	for _, held := range p.holds {
		one := Hold{Pod: klog.KObj(held.pod).String(), Priority: preemption.PriorityOf(held.pod), Node: held.pod.Status.NominatedNodeName, Claims: held.claims}
		if held.failed != nil {
			one.Unknown = held.failed.Error()
		}
		all = append(all, one)
	}
	return all
}

// holderOf is the pod for which the claim is a hold, nil if it is none.
func (p *preempting) holderOf(claim *resourceapi.ResourceClaim) *corev1.Pod {
	for _, held := range p.holds {
		if claim.Namespace == held.pod.Namespace && claim.Name == nameOfHold(held.pod) {
			return held.pod
		}
	}
	return nil
}
