// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Which pods need our allocator: those with a claim that refers to a CEL constraint, and those
// that get devices of a class that has one by default. The latter may have no claim at all, but
// ask for an extended resource that stands for the class. Upstream's plugin makes the claim then,
// for each node anew. The same holds for preferences, but for the gate: a claim with a constraint
// may not be allocated while that is off, a claim with a preference is allocated as if it had none.

// constrained are the claims for which a CEL constraint holds. That for extended resources is
// among them if it is among the claims.
func (pl *DynamicResourcesCEL) constrained(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	return slices.DeleteFunc(slices.Clone(claims), func(claim *resourceapi.ResourceClaim) bool {
		return !v1alpha1.HasConstraints(claim, pl.hasDefaults)
	})
}

// prefers tells whether a preference is about one of the claims.
func (pl *DynamicResourcesCEL) prefers(prepared allocator.Prepared, claims []*resourceapi.ResourceClaim) bool {
	return pl.enabled && (pl.preference != "" || slices.ContainsFunc(claims, func(claim *resourceapi.ResourceClaim) bool {
		if prefers, known := prepared.Prefers(claim); known {
			return prefers
		}
		return v1alpha1.HasPreference(claim, pl.hasPreferences)
	}))
}

// hasDefaults tells whether a class has constraints by default. While the gate is off they don't
// hold, and pods are scheduled as they would be by a scheduler that does not know them.
func (pl *DynamicResourcesCEL) hasDefaults(className string) bool {
	if !pl.enabled {
		return false
	}
	class, err := pl.claims.DeviceClasses().Get(className)
	return err == nil && v1alpha1.HasDefaults(class)
}

func (pl *DynamicResourcesCEL) hasPreferences(className string) bool {
	class, err := pl.claims.DeviceClasses().Get(className)
	return err == nil && v1alpha1.HasPreferences(class)
}

// withExtended adds the claim for the extended resources of the pod if there is to be one.
func (pl *DynamicResourcesCEL) withExtended(pod *v1.Pod, claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	if extended := pl.extendedClaim(pod); extended != nil {
		return append(slices.Clone(claims), extended)
	}
	return claims
}
