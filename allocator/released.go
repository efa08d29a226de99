// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"
)

// Without is the allocator for the time when some claims have given back their devices, for those
// who want to know what would fit then. What each of the claims is said to have must be in use and
// must not be given back by two of them. It looks at the claims and slices of this allocator and
// shares its budgets; making it costs about as much as the claims have devices.
func (a *Allocator) Without(claims ...*resourceapi.ResourceClaim) *Allocator {
	without := &Allocator{
		options:        a.options,
		features:       a.features,
		state:          a.state.Without(AllocatedTo(claims, a.features)),
		classes:        a.classes,
		selectors:      a.selectors,
		allSlices:      a.allSlices,
		inventories:    a.inventories,
		resolvedClaims: a.resolvedClaims,
		compiling:      a.compiling,
	}
	without.shapes = newShapes(without)
	return without
}
