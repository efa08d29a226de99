// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

// steady is 100 for clusters that this Placement chose before, else 0.
func steady(r *run, candidates []*Candidate) ([]int64, error) {
	result := make([]int64, len(candidates))
	for i, c := range candidates {
		if _, chosen := r.former.decisions[c.Cluster.Name]; chosen {
			result[i] = MaxScore
		}
	}
	return result, nil
}
