// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/availability"
)

// Refusals tells on which nodes claims are known not to fit, without asking anything that is
// not known: for a scheduler that does not want to visit them. It is for one goroutine.
type Refusals struct {
	plan *plan
	// pools are the devices in use, once many nodes are asked about.
	pools *availability.Pools
}

// refusalsOf returns nil if nothing is ever known of such claims: one of them has no CEL constraint, or their answers are not
// kept.
func (a *planner) refusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	p := a.planFor(claims)
	if _, ok := p.content(); !ok {
		return nil
	}
	return &Refusals{plan: p}
}

// ForMany prepares for questions about most nodes of a cluster: each takes less then.
func (r *Refusals) ForMany() { r.pools = r.plan.planner.state.Pools() }

// Has reports whether it is known that the claims don't fit on a node. Then [Allocator.Allocate]
// says so, and why, for as long as that is remembered.
func (r *Refusals) Has(node *v1.Node) bool {
	a := r.plan.planner
	has, err := a.inventoryOf(node)
	if err != nil {
		return false
	}
	n := onNode{plan: r.plan, node: node, inventory: has}
	if r.pools != nil {
		n.allocated = r.pools.Of(has)
	} else {
		n.allocated = a.state.Of(has.Candidates)
	}
	key, ok := n.answerKey()
	return ok && knownRefusal(a.cache.answers.Has(key)) != nil
}
