// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import "github.com/celset/celset/placement/internal/candidate"

// steadily is the prioritizer Steady.
type steadily struct{}

// describe returns a sentence that says which clusters the prioritizer prefers.
func (steadily) describe() string {
	return "Steady prefers clusters that the Placement selected before, so that decisions rarely change."
}

// reads returns the inputs of the scores.
func (steadily) reads() Reads { return Reads{} }

// score returns 100 for clusters in the Placement's former decision, and 0 for other clusters.
func (steadily) score(in *Inputs, candidates []*candidate.Candidate) ([]int64, error) {
	result := make([]int64, len(candidates))
	for i, c := range candidates {
		if in.Former.Chose(c.Cluster.Name) {
			result[i] = MaxScore
		}
	}
	return result, nil
}
