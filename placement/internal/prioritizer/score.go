// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package prioritizer

import (
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/celset/celset/placement/internal/candidate"
	"github.com/celset/celset/placement/internal/finding"
	"github.com/celset/celset/placement/internal/hub"
)

// Names of the built-in prioritizers.
const (
	Steady                    = "Steady"
	Balance                   = "Balance"
	ResourceAllocatableCPU    = "ResourceAllocatableCPU"
	ResourceAllocatableMemory = "ResourceAllocatableMemory"
)

// Every score is between MinScore and MaxScore.
const (
	MinScore = -100
	MaxScore = 100
)

// scorer computes the scores of candidates.
type scorer interface {
	// describe returns a sentence that says which clusters the scorer prefers.
	describe() string
	// reads returns the inputs of the scores.
	reads() Reads
	// score returns a score for each candidate, in the same order. candidates are sorted by name. score fails only if the snapshot
	// can't be read.
	score(in *Inputs, candidates []*candidate.Candidate) ([]int64, error)
}

// Reads names the inputs on which the scores of a prioritizer depend, in addition to the former decision of the Placement. A
// remembered result is valid only while these inputs stay the same.
type Reads struct {
	// Others is true if the scores depend on the decisions of other Placements.
	Others bool
	// Amount is the resource whose amounts on clusters determine the scores, or "".
	Amount clusterv1.ResourceName
	// Score is the name of the AddOnPlacementScores whose values are the scores, or "".
	Score string
}

// Inputs are the inputs of a prioritizer, without the candidates.
type Inputs struct {
	Snapshot *hub.Snapshot
	// Former is the former decision of the Placement.
	Former *hub.Former
	Now    time.Time
	// Found receives warnings about scores, messages about missing scores, and the times at which scores expire.
	Found *finding.Findings
}

// expired reports whether an AddOnPlacementScore has expired. If it expires later, Found receives the time of its expiry.
func (in *Inputs) expired(object *clusterv1alpha1.AddOnPlacementScore) bool {
	until := object.Status.ValidUntil
	switch {
	case until == nil:
		return false
	case in.Now.After(until.Time):
		return true
	default:
		in.Found.Next.After(until.Time)
		return false
	}
}
