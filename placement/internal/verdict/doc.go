// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict remembers the results of a Placement's predicates for each cluster. A [Judge] returns [Verdicts] for a list of
// clusters. It evaluates the predicates only for clusters without a remembered verdict that is still valid. An [Overrun] reports
// that the evaluations exceeded a time limit.
//
// A verdict depends on the spec of the Placement, on the cluster, and on the AddOnPlacementScores that the expressions read,
// including whether they have expired. If the expressions read now(), it also depends on the tick of the clock. A verdict is
// valid while none of these change. It is never reused if the cluster has no version or if the evaluation ran out of time.
package verdict
