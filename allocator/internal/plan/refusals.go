// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/availability"
)

// Refusals tells on which nodes claims are known not to fit, without asking anything that is
// not known: for a scheduler that does not want to visit them. It is for one goroutine.
type Refusals struct {
	plan *Plan
	// pools are the devices in use, once many nodes are asked about.
	pools *availability.Pools
}

// RefusalsOf returns nil if nothing is ever known of such claims: one of them has no CEL constraint, or their answers are not
// kept.
func (a *Planner) RefusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	p := a.PlanFor(claims)
	if _, ok := p.content(); !ok {
		return nil
	}
	return &Refusals{plan: p}
}

// ForMany prepares for questions about most nodes of a cluster: each takes less then.
func (r *Refusals) ForMany() { r.pools = r.plan.Planner.State.Pools() }

// Has reports whether it is known that the claims don't fit on a node. Then an allocator
// says so, and why, for as long as that is remembered.
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
