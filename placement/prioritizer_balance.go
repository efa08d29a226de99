// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// balance is the higher, the fewer other Placements chose a cluster: 100 for none,
// -100 for the most that any cluster of the hub has, candidate or not. It is even,
// for so it is rounded on any hub.
func balance(r *run, candidates []*Candidate) ([]int64, error) {
	counts, most := r.snapshot.Decisions.others(r.key, candidates)
	result := make([]int64, len(candidates))
	for i, count := range counts {
		result[i] = MaxScore
		if count > 0 {
			result[i] = 2 * int64(MaxScore*(0.5-float64(count)/float64(most)))
		}
	}
	return result, nil
}
