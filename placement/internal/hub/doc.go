// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub has what a decision reads of a hub. A [Snapshot] has the objects of the
// hub at one moment. [Memberships] finds the clusters that a Placement may choose from,
// and remembers for all Placements in which set each cluster is. [Decisions] counts the
// PlacementDecisions, and returns those of one Placement as its [Former] decision.
package hub
