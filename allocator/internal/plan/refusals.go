// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/availability"
)

// Refusals finds the nodes with a cached result that the claims don't fit, so that a scheduler can skip these nodes. It never
// searches. Only one goroutine may use it.
type Refusals struct {
	plan *Plan
	// pools holds the devices in use by pool. [Refusals.ForMany] sets it.
	pools *availability.Pools
}

// RefusalsOf returns the refusals of claims. It returns nil if results for these claims are never cached, for example because
// no claim has a CEL constraint.
func (a *Planner) RefusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	p := a.PlanFor(claims)
	if _, ok := p.content(); !ok {
		return nil
	}
	return &Refusals{plan: p}
}

// ForMany makes calls of Has faster. It pays off if Has is called for most nodes of a cluster.
func (r *Refusals) ForMany() { r.pools = r.plan.Planner.State.Pools() }

// Has reports whether the cache stores that the claims don't fit on a node. While it does, Allocate returns the same refusal.
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
