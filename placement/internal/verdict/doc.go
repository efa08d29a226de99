// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict remembers the results of a Placement's predicates on each cluster. A [Judge] returns the [Verdicts] on a list
// of clusters. It evaluates the predicates only on clusters without a remembered verdict that is still valid. An [Overrun]
// reports that the evaluations exceeded a time limit.
//
// A verdict depends on the spec of the Placement, on the cluster, and on the AddOnPlacementScores that the expressions read,
// including whether these have expired. If the expressions read now(), the verdict also depends on the tick of the clock. A
// verdict is valid until one of these changes. It is never reused if the cluster has no version or if the evaluation ran out of
// time.
package verdict
