// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"slices"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/internal/candidate"
)

// First selects the first limit candidates. The other candidates get the reason Surplus. wanted is spec.numberOfClusters, or 0
// if the field is not set.
func First(candidates []*candidate.Candidate, limit, wanted int) {
	for i, c := range candidates {
		if c.Selected = i < limit; !c.Selected {
			c.Reason = &candidate.Surplus{Wanted: wanted}
		}
	}
}

// Pick selects at most limit of the ranked candidates within the constraints. The other candidates get a reason. wanted is
// spec.numberOfClusters, or 0 if the field is not set.
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

// mostMoves is the maximum number of moved clusters that PicksTheSame handles. If more clusters moved, the Placement is decided
// again.
const mostMoves = 16

// PicksTheSame reports whether the same candidates are picked after some available clusters have moved to other topologies. If
// it returns false, the Placement must be decided again. moved holds the indices of the moved clusters. wanted is
// spec.numberOfClusters.
func (r *Ranking) PicksTheSame(moved []int, clusters []*clusterv1.ManagedCluster, wanted *int32) bool {
	// If fewer clusters were picked than wanted, a condition has the number of candidates that the constraints excluded, which may
	// have changed.
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
	// If no candidate has the key, a decision must set a condition. The number of values is limited, because a cluster may get
	// a new value each second, and only a decision drops values that no candidate has any more.
	if slices.ContainsFunc(s.topologies, func(t topologies) bool { return t.few == 0 || len(t.values) > len(r.places)+mostMoves }) {
		return false
	}
	before, now := slices.Sorted(slices.Values(r.picked)), slices.Sorted(slices.Values(s.pick(limit)))
	return slices.Equal(before, now)
}
