// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preempt answers who would be evicted for the devices of a pod, without evicting anybody: with
// the rules of celset-scheduler (package allocator/preemption), on what was read.
//
//	result, err := preempt.Run(ctx, state, subject, preempt.Options{Features: features})
//	result.Helps()   // on some node
//
// Only devices are looked at. What else keeps a pod from a node, or is in short supply there, the
// scheduler knows.
package preempt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/preemption"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
)

// Options say what is asked.
type Options struct {
	Features structured.Features
	// Nodes are the names of those to look at, all if there are none.
	Nodes []string
	// Limit is how many nodes of a kind are told of, 0 for all.
	Limit int
}

// preempting is one pod for which others might go.
type preempting struct {
	Options
	state    *clusterstate.State
	subject  *clusterstate.Subject
	priority int32
	now      time.Time
	problem  allocator.Problem
	budgets  preemption.Budgets
	release  preemption.Release
	// onNode are the pods on nodes that have not ended.
	onNode map[string][]*corev1.Pod
	// claims are all, by namespace and name.
	claims map[types.NamespacedName]*resourceapi.ResourceClaim
	// holds are what is probably held for pods that are nominated to a node.
	holds []*hold
}

// Run asks for all nodes. The error is about asking: what keeps the claims from being allocated is in the
// result.
func Run(ctx context.Context, state *clusterstate.State, subject *clusterstate.Subject, options Options) (*Result, error) {
	if subject.Pod == nil {
		return nil, fmt.Errorf("%s: pods are evicted for a pod: name it as pod/NAME", subject)
	}
	nodes, err := state.ChosenNodes(options.Nodes)
	if err != nil {
		return nil, err
	}
	if err := requirePriorities(state.Pods); err != nil {
		return nil, err
	}
	p := newPreempting(state, subject, options)
	p.hold(ctx)
	p.takeHeld()
	result := &Result{
		Subject: subject.String(), Priority: p.priority, Forbidden: p.forbidden(), Holds: p.heldByOthers(),
		Candidates: []Candidate{}, Notes: p.notes(),
	}
	for _, node := range nodes {
		if err := p.on(ctx, node, result); err != nil {
			result.Error = err.Error()
			break
		}
	}
	slices.SortStableFunc(result.Candidates, func(a, b Candidate) int {
		return cmp.Or(a.cost.Compare(b.cost), cmp.Compare(a.Node, b.Node))
	})
	p.leaveOut(ctx, result)
	return result, nil
}

// requirePriorities refuses to guess who is more important than whom.
func requirePriorities(pods []*corev1.Pod) error {
	for _, pod := range pods {
		if pod.Spec.Priority == nil && pod.Spec.PriorityClassName != "" {
			return fmt.Errorf("pod %s: spec.priorityClassName: there is no PriorityClass %q: give it with -f, or set spec.priority", klog.KObj(pod), pod.Spec.PriorityClassName)
		}
	}
	return nil
}

func newPreempting(state *clusterstate.State, subject *clusterstate.Subject, options Options) *preempting {
	p := &preempting{
		Options: options, state: state, subject: subject, now: time.Now(), priority: preemption.PriorityOf(subject.Pod),
		problem: state.Problem(subject, options.Features, allocator.WithCache(allocator.NewCache()), allocator.WithoutPreferences()),
		budgets: preemption.NewBudgets(state.Budgets),
		onNode:  map[string][]*corev1.Pod{},
		claims:  map[types.NamespacedName]*resourceapi.ResourceClaim{},
	}
	for _, claim := range state.Claims {
		if claim.UID == "" {
			// It is from a file that somebody wrote.
			claim = claim.DeepCopy()
			claim.UID = types.UID(klog.KObj(claim).String())
		}
		p.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, pod := range state.Pods {
		if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			p.onNode[pod.Spec.NodeName] = append(p.onNode[pod.Spec.NodeName], pod)
		}
	}
	p.release = p.releaseFor(subject)
	return p
}

func (p *preempting) claim(namespace, name string) *resourceapi.ResourceClaim {
	return p.claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// releaseFor is for a pod whose claims keep what they have. What is just being allocated is not known.
func (p *preempting) releaseFor(subject *clusterstate.Subject) preemption.Release {
	release := preemption.Release{Claim: p.claim, Own: sets.New[types.UID](), Held: sets.New[structured.DeviceID]()}
	for _, claim := range subject.Claims {
		if known := p.claim(claim.Namespace, claim.Name); known != nil {
			release.Own.Insert(known.UID)
		}
	}
	return release
}

// newAllocator answers beside what is allocated and what is held. Like the scheduler's it has a budget of
// its own, here for each node.
func (p *preempting) newAllocator(ctx context.Context, held []resourceapi.DeviceRequestAllocationResult) (*allocator.Allocator, error) {
	state := allocator.AllocatedTo(p.problem.Allocated, p.Features)
	allocator.AddAllocated(&state, held, p.Features)
	options := append(slices.Clone(p.problem.Options), allocator.WithAttemptBudget(
		allocator.NewAttemptBudget(uint64(configv1alpha1.DefaultBudgetAttemptCost), configv1alpha1.DefaultBudgetAttemptSteps)))
	return allocator.NewAllocator(ctx, p.Features, state, p.problem.Classes, p.problem.Slices, p.problem.Selectors, options...)
}

// forbidden says why nobody is evicted for the pod, whatever there is.
func (p *preempting) forbidden() string {
	pod := p.subject.Pod
	if pod.Spec.NodeName != "" {
		return "the pod is on node " + pod.Spec.NodeName
	}
	if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		return "the pod's preemptionPolicy is Never"
	}
	if node := pod.Status.NominatedNodeName; node != "" && slices.ContainsFunc(p.onNode[node], func(on *corev1.Pod) bool {
		return preemption.PriorityOf(on) < p.priority && isEvicted(on)
	}) {
		return fmt.Sprintf("the pod is nominated to node %s, where pods that were evicted are ending", node)
	}
	return ""
}

// isEvicted tells whether a scheduler ended the pod for another.
func isEvicted(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue && condition.Reason == corev1.PodReasonPreemptionByScheduler
	})
}
