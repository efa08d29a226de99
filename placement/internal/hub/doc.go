// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub provides the state of a hub that decisions depend on. A [Snapshot] holds the objects of the hub at one moment.
// [Memberships] finds the clusters that a Placement may choose from. It remembers the set of each cluster for all Placements.
// [Decisions] counts the PlacementDecisions and returns the [Former] decision of one Placement.
package hub
