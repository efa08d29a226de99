// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/candidate"
)

// First marks the first candidates as selected, at most limit, and says of the others that no more are wanted. The
// candidates are ranked.
func First(candidates []*candidate.Candidate, limit, wanted int) {
	for i, c := range candidates {
		if c.Selected = i < limit; !c.Selected {
			c.Reason = &candidate.Surplus{Wanted: wanted}
		}
	}
}

// Pick marks the candidates that are selected, at most limit, and says of the
// others why they are not. The candidates are ranked.
func Pick(constraints []Constraint, candidates []*candidate.Candidate, limit, wanted int) *Ranking {
	r := newRanking(constraints, candidates)
	s := newSpreading(r)
	r.picked = s.pick(limit)
	for _, rank := range r.picked {
		candidates[rank].Selected = true
	}
	for _, class := range s.classes {
		if class.reason = s.refusal(class); class.reason == nil {
			class.reason = &candidate.Surplus{Wanted: wanted}
		}
		for _, rank := range class.ranks {
			candidates[rank].Reason = class.reason
		}
	}
	return r
}

// mostMoves is of how many clusters that have moved the ranks are looked for.
const mostMoves = 16

// PicksTheSame reports whether the same clusters are selected when some of the available clusters are in other
// topologies, and notes these; false says nothing. wanted is how many clusters the Placement wants, nil for all.
func (r *Ranking) PicksTheSame(moved []int, clusters []*clusterv1.ManagedCluster, wanted *int32) bool {
	// Where fewer are selected, a condition says how many the constraints have removed.
	if r == nil || len(moved) > mostMoves || len(r.picked) == 0 || wanted != nil && len(r.picked) < int(*wanted) {
		return false
	}
	limit := len(r.places)
	if wanted != nil {
		limit = min(limit, int(*wanted))
	}
	for _, place := range moved {
		rank := slices.Index(r.places, int32(place))
		for i := range r.constraints {
			if rank >= 0 {
				r.move(i, rank, clusters[place])
			}
		}
	}
	s := newSpreading(r)
	// If no candidate is in a topology, a condition says so. Values that no candidate has any more are dropped when the
	// Placement is decided: a cluster may have another one each second.
	if slices.ContainsFunc(s.topologies, func(t topologies) bool { return t.few == 0 || len(t.values) > len(r.places)+mostMoves }) {
		return false
	}
	before, now := slices.Sorted(slices.Values(r.picked)), slices.Sorted(slices.Values(s.pick(limit)))
	return slices.Equal(before, now)
}
