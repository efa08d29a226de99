// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-base/metrics"
)

const claimsName = subsystem + "_claims"

// ListClaims returns all ResourceClaims of the cluster. Callers must not modify them.
type ListClaims func() ([]*resourceapi.ResourceClaim, error)

// newClaims returns a collector that counts the existing claims at each scrape. A counter in scheduling attempts would count a
// claim once for each attempt.
func newClaims() *collector[ListClaims] {
	desc := newDesc(claimsName, "Number of ResourceClaims in the cluster, by the most expensive kind of constraint in the claim and by state.",
		"constraint", "state")
	return &collector[ListClaims]{descs: []*metrics.Desc{desc}, show: func(list ListClaims, value func(*metrics.Desc, float64, ...string)) {
		all, err := list()
		if err != nil {
			return
		}
		count := map[[2]string]int{}
		for _, claim := range all {
			count[[2]string{string(constraintOf(claim)), stateOf(claim)}]++
		}
		for _, constraint := range []Constraint{ConstraintNone, ConstraintAttribute, ConstraintCEL} {
			for _, state := range []string{statePending, stateAllocated} {
				value(desc, float64(count[[2]string{string(constraint), state}]), string(constraint), state)
			}
		}
	}}
}

// WatchClaims sets the function that lists the claims.
func (m *Metrics) WatchClaims(list ListClaims) { m.claims.setSource(list) }

func stateOf(claim *resourceapi.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return statePending
	}
	return stateAllocated
}
