// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import "github.com/celset/celset/placement/internal/candidate"

// balanced is the prioritizer Balance.
type balanced struct{}

// describe returns a sentence that says which clusters the prioritizer prefers.
func (balanced) describe() string {
	return "Balance prefers clusters that few other Placements selected, so that all clusters get similar numbers of decisions."
}

// reads returns the inputs of the scores.
func (balanced) reads() Reads { return Reads{Others: true} }

// score returns higher scores for clusters with fewer decisions of other Placements. A cluster without decisions gets 100. The
// largest number of decisions on any cluster of the hub, candidate or not, gets -100. All scores are even numbers, so that
// every hub rounds them to the same value.
func (balanced) score(in *Inputs, candidates []*candidate.Candidate) ([]int64, error) {
	counts, most := in.Snapshot.Decisions.Others(in.Former, candidate.ClustersIn(candidates), len(candidates))
	result := make([]int64, len(candidates))
	for i, count := range counts {
		result[i] = MaxScore
		if count > 0 {
			result[i] = 2 * int64(MaxScore*(0.5-float64(count)/float64(most)))
		}
	}
	return result, nil
}
