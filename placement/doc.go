// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement decides which clusters a Placement of Open Cluster Management selects, and explains the decision. It has no
// client and no clock. Its inputs are a [Snapshot] of the hub and a time. Its output is a [Result].
//
//	scheduler, err := placement.NewScheduler(placement.Config{})
//	result, err := scheduler.Schedule(ctx, object, snapshot, time.Now())
//	if result.Decision != nil {
//		steps := placement.Updates(former, result.Decision.Objects(object))
//	}
//	object.Status = result.ApplyTo(object.Status)
//
// # From clusters to decisions
//
// Each step is a package in placement/internal. schedule.go calls the packages in this order:
//
//  1. hub finds the available clusters ([Availability]). These are the clusters in the ManagedClusterSets that are bound to the
//     namespace of the Placement. If the Placement names sets, only clusters in these sets are available.
//  2. filter removes clusters that match no predicate, and clusters with untolerated taints. Predicates are label selectors,
//     claim selectors and CEL expressions. Each filter reports the clusters that it removed, with a [Reason] ([Filtered]).
//  3. prioritizer gives each remaining cluster ([Candidate]) scores from -100 to 100. The weighted sum ranks the candidates.
//     Between equal sums, a candidate without an untolerated PreferNoSelect taint comes first. Then the name decides, or a
//     random number if the Placement has celset.dev/tie-break.
//  4. spread picks up to spec.numberOfClusters candidates in rank order, within spec.spreadPolicy.
//  5. decision divides the selected clusters into groups, and each group into slices of at most [MaxSliceLength] clusters. Each
//     slice becomes one PlacementDecision ([Decision]). A cluster stays in its slice if possible, so that few objects are
//     written.
//
// The package placement/report formats a result as text.
//
// # Errors never deselect
//
// If [Result.Decision] is nil, the former decision stays in effect: nothing must be written or deleted. The decision is nil
//
//   - if the Placement is misconfigured: the condition PlacementMisconfigured names plugin and field, and line and column in
//     CEL;
//   - if a ManagedClusterSet that the Placement may select from is invalid;
//   - if Schedule returns an error, because the context ended or the snapshot could not be read;
//   - if evaluations exceed a time limit, so that the speed of a machine never decides which clusters are selected: the
//     condition PlacementEvaluationFailed names the expression ([Overrun]);
//   - if no cluster is selected, and the evaluation failed on a cluster of the former decision.
//
// Otherwise a cluster on which an evaluation failed is not selected, and the condition PlacementEvaluationFailed names the
// cluster. If no set is bound, or if all sets are empty, the decision is empty, even if the Placement is misconfigured. So
// unbinding a set always deselects its clusters.
//
// # Memory
//
// For each Placement, a [Scheduler] remembers the verdict of the predicates on each cluster. A verdict is valid for one version
// of the cluster and one generation of the Placement. So a change of one cluster costs one evaluation. A verdict that read
// now() is computed again at the next tick. A verdict that read an AddOnPlacementScore is computed again after a change of the
// score. The memory never changes a result.
//
// If time runs out before all clusters are evaluated, the next call evaluates the other clusters, with the value of now() of
// the first call. [Result.Requeue] is the time to decide again even if no object changes. [Result.Reads] names the scores to
// watch. [Scheduler.Unchanged] reports whether the last result is still valid, without making a new result.
package placement
