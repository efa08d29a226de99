// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device/bitset"
)

// Refusals tells on which nodes claims are known not to fit, without asking anything that is
// not known: for a scheduler that does not want to visit them. It is for one goroutine.
type Refusals struct {
	allocator *Allocator
	claims    []*resourceapi.ResourceClaim
	content   fingerprint.Sum
	// pools are the devices in use, once many nodes are asked about.
	pools *availability.Pools
}

// RefusalsOf is nil if nothing is ever known of such claims: one of them has no CEL constraint.
func (a *Allocator) RefusalsOf(claims []*resourceapi.ResourceClaim) *Refusals {
	if content, ok := a.contentOf(claims); ok {
		return &Refusals{allocator: a, claims: claims, content: content}
	}
	return nil
}

// ForMany prepares for questions about most nodes of a cluster: each takes less then.
func (r *Refusals) ForMany() {
	r.pools = r.allocator.state.Pools()
}

// Has tells whether it is known that the claims don't fit on a node. Then [Allocator.Allocate]
// says so, and why, for as long as that is remembered.
func (r *Refusals) Has(node *v1.Node) bool {
	has, err := r.allocator.inventoryOf(node)
	if err != nil {
		return false
	}
	var allocated bitset.Set
	if r.pools != nil {
		allocated = r.pools.Of(has)
	} else {
		allocated = r.allocator.state.Of(has.Candidates)
	}
	if !r.allocator.keepsAnswer(has) {
		return false
	}
	key := r.allocator.answerKeyOf(view.IDOf(has, r.allocator.readSetOf(r.claims)), r.content, allocated)
	return knownRefusal(r.allocator.cache.answers.Has(key)) != nil
}
