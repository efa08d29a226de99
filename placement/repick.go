// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// A cluster that moves to another region concerns every Placement that is spread over regions, and few of them
// select it. How clusters rank does not depend on where they are: so the selection is made once more, from the
// ranks that are known, and compared with the one that stands.

// limit is how many of some candidates are to be selected.
func (r *run) limit(candidates int) int {
	if wanted := r.placement.Spec.NumberOfClusters; wanted != nil {
		return min(candidates, int(*wanted))
	}
	return candidates
}

// placesToSpread are the places of the ranked candidates, nil if there are no constraints that matter.
func (r *run) placesToSpread() []int32 {
	candidates := r.result.Candidates
	if !r.plan.spreads(r.limit(len(candidates)), len(candidates)) {
		return nil
	}
	if r.places == nil {
		return placesOf(candidates)
	}
	return r.places
}

// picksTheSame tells whether the clusters that are selected are those of a decision that stands, though some that are
// ranked as they were have other labels or claims.
func (r *run) picksTheSame(f *fixpoint, available *Availability, elsewhere []int) bool {
	selected := f.former.decisions
	if len(r.plan.groups) > 0 {
		for _, i := range elsewhere {
			if _, is := selected[available.Clusters[i].Name]; is {
				return false
			}
		}
	}
	if f.places == nil {
		return true
	}
	wanted := r.placement.Spec.NumberOfClusters
	if len(selected) == 0 || wanted != nil && len(selected) < int(*wanted) {
		// The condition tells how many candidates the constraints have removed.
		return false
	}
	limit := r.limit(len(f.places))
	picked := newSpreading(r.plan.spread, available, f.places, limit).pick(limit)
	if len(picked) != len(selected) {
		return false
	}
	for _, rank := range picked {
		if _, is := selected[available.Clusters[f.places[rank]].Name]; !is {
			return false
		}
	}
	return true
}
