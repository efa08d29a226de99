// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/placement/internal/hub"
)

// A decision is made from a snapshot of a hub.
type (
	// Snapshot is the hub at one moment.
	Snapshot = hub.Snapshot
	// ScoreNamer lists the AddOnPlacementScores of a cluster, so that a condition can name those that there are.
	ScoreNamer = hub.ScoreNamer
	// Decisions counts the PlacementDecisions of the hub.
	Decisions = hub.Decisions
	// Availability has the clusters that a Placement may choose from.
	Availability = hub.Availability
)

// NewDecisions returns the Decisions of some objects.
func NewDecisions(objects ...*clusterv1beta1.PlacementDecision) *Decisions {
	return hub.NewDecisions(objects...)
}
