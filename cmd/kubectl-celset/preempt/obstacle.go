// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/allocator/preemption"
)

// leaveOut keeps as many nodes as are wanted, and finds out what is in the way on those that refuse.
func (p *preempting) leaveOut(ctx context.Context, result *Result) {
	result.Candidates, result.MoreCandidates = first(result.Candidates, p.Limit)
	result.Refused, result.MoreRefused = first(result.Refused, p.Limit)
	for i := range result.Refused {
		refusal := &result.Refused[i]
		if refusal.evicted == nil {
			continue
		}
		if err := refusal.evicted.explain(ctx, refusal); err != nil {
			if ctx.Err() == nil {
				refusal.Reason = err.Error()
				continue
			}
			if result.Error == "" {
				result.Error = err.Error()
			}
			return
		}
	}
}

// first are so many of all, and how many are left out.
func first[T any](all []T, limit int) ([]T, int) {
	if limit == 0 || len(all) <= limit {
		return all, 0
	}
	return all[:limit], len(all) - limit
}

// explain says what is in the way when all are gone who may be evicted.
func (t *trial) explain(ctx context.Context, refusal *Refusal) error {
	released := t.release.Claims(t.gone(func(int) bool { return true }))
	problem := explain.Problem{Problem: t.problem, NamesAll: true}
	problem.Claims = t.claims
	problem.Allocated = slices.DeleteFunc(slices.Clone(problem.Allocated), func(claim *resourceapi.ResourceClaim) bool {
		return slices.ContainsFunc(released, func(gone *resourceapi.ResourceClaim) bool {
			return gone.Namespace == claim.Namespace && gone.Name == claim.Name
		})
	})
	said, err := problem.Node(ctx, t.node)
	if err != nil {
		return err
	}
	if said.Unmet != nil {
		refusal.Unmet = said.Unmet.String()
	} else if said.Reason != "" {
		refusal.Unmet = said.Reason
	}
	refusal.Never = said.Never
	for _, owner := range said.InTheWay {
		i := slices.IndexFunc(problem.Allocated, func(claim *resourceapi.ResourceClaim) bool { return klog.KObj(claim).String() == owner.Claim })
		refusal.InTheWay = append(refusal.InTheWay, t.obstacle(problem.Allocated[i], owner.Devices))
	}
	return nil
}

func (t *trial) obstacle(claim *resourceapi.ResourceClaim, devices []string) Obstacle {
	if holder := t.holderOf(claim); holder != nil {
		return Obstacle{Devices: devices, Why: fmt.Sprintf("probably held for pod %s, which has priority %d", klog.KObj(holder), preemption.PriorityOf(holder))}
	}
	return Obstacle{Claim: klog.KObj(claim).String(), Devices: devices, Why: t.whyKept(claim)}
}

// whyKept says why a claim keeps its devices when all are gone who may be evicted on the node.
func (t *trial) whyKept(claim *resourceapi.ResourceClaim) string {
	if slices.ContainsFunc(t.subject.Claims, func(own *resourceapi.ResourceClaim) bool {
		return own.Namespace == claim.Namespace && own.Name == claim.Name
	}) {
		return "it is the pod's own"
	}
	if len(claim.Status.ReservedFor) == 0 {
		return "nobody uses it, so that no eviction gives them back"
	}
	var users []string
	for _, user := range claim.Status.ReservedFor {
		if kept := t.keeps(claim, user); kept != "" && len(users) < maxUsers {
			users = append(users, kept)
		}
	}
	if len(users) == 0 {
		return "it lacks the finalizer " + resourceapi.Finalizer + ", so that nobody takes them away"
	}
	return strings.Join(users, ", ")
}

// maxUsers is how many users of a claim are told of.
const maxUsers = 4

// keeps says why somebody who uses a claim can't be evicted, empty if he can.
func (t *trial) keeps(claim *resourceapi.ResourceClaim, user resourceapi.ResourceClaimConsumerReference) string {
	if !preemption.IsPod(user) {
		return fmt.Sprintf("it is reserved for %s %s, which is not evicted", user.Resource, user.Name)
	}
	name := claim.Namespace + "/" + user.Name
	i := slices.IndexFunc(t.state.Pods, func(pod *corev1.Pod) bool { return pod.UID == user.UID && pod.Namespace == claim.Namespace })
	if i < 0 {
		return fmt.Sprintf("pod %s with the uid %q is not known", name, user.UID)
	}
	pod := t.state.Pods[i]
	switch priority := preemption.PriorityOf(pod); {
	case priority >= t.priority:
		return fmt.Sprintf("pod %s has priority %d", name, priority)
	case pod.Spec.NodeName == "":
		return "pod " + name + " is on no node yet"
	case pod.Spec.NodeName != t.node.Name:
		return fmt.Sprintf("pod %s is on node %s", name, pod.Spec.NodeName)
	}
	return ""
}
