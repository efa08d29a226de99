// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub provides the state of a hub on which decisions depend. A [Snapshot] holds the objects of the hub at one time.
// [Memberships] finds the clusters that a Placement may select. It remembers the clusters of each combination of sets, for all
// Placements. [Decisions] counts the PlacementDecisions and returns the [Former] decision of a Placement.
package hub
