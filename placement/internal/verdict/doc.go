// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict keeps what the predicates of a Placement say of each cluster. A [Judge]
// returns [Verdicts] on clusters. It evaluates the predicates only for clusters on which
// no former verdict holds. An [Overrun] says that the evaluations took longer than they may.
//
// A verdict depends on the spec of the Placement, on the cluster, on the AddOnPlacementScores
// that the expressions read and whether these are expired, and on the tick of the clock if
// the expressions read now(). It holds as long as all of that is the same. A verdict on a
// cluster without version never holds, nor does one that was not found in time.
package verdict
