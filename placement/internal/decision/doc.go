// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decision turns the selected clusters of a Placement into PlacementDecisions.
// [Inputs.Decide] divides the clusters into groups and these into slices, one for each
// PlacementDecision, so that few objects have to be written. [Updates] orders the writes
// so that a cluster that stays selected is always in some object.
package decision
