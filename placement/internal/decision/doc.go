// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision turns the selected clusters of a Placement into PlacementDecisions. [Inputs.Decide] divides the clusters
// into groups, and each group into slices. Each slice becomes one PlacementDecision. Slices change little, so that few objects
// must be written. [Updates] orders the writes so that a cluster that stays selected is always in at least one object.
package decision
