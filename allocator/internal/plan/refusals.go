// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/availability"
)

// Refusals finds nodes with a cached answer that the claims don't fit, so that a scheduler need not visit them. It searches
// nothing. It is for one goroutine.
type Refusals struct {
	plan *Plan
	// pools holds the devices in use, after [Refusals.ForMany].
	pools *availability.Pools
}

// RefusalsOf returns the refusals of claims. It returns nil if their answers are never cached, for example because a claim has no
// CEL constraint.
func (a *Planner) RefusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	p := a.PlanFor(claims)
	if _, ok := p.content(); !ok {
		return nil
	}
	return &Refusals{plan: p}
}

// ForMany prepares for calls of Has for most nodes of a cluster, which are faster then.
func (r *Refusals) ForMany() { r.pools = r.plan.Planner.State.Pools() }

// Has reports whether the cache holds a refusal of the claims on a node. An allocator returns the same refusal and its reason
// while the entry is cached.
func (r *Refusals) Has(node *v1.Node) bool {
	a := r.plan.Planner
	has, err := a.InventoryOf(node)
	if err != nil {
		return false
	}
	n := OnNode{Plan: r.plan, Node: node, Inventory: has}
	if r.pools != nil {
		n.Allocated = r.pools.Of(has)
	} else {
		n.Allocated = a.State.Of(has.Candidates)
	}
	key, ok := n.answerKey()
	return ok && KnownRefusal(a.Cache.answers.Has(key)) != nil
}
