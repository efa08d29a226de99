// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement decides which clusters a Placement of Open Cluster Management
// selects, and says why. It has no client and no clock: a [Snapshot] of the hub and
// a time go in, a [Result] comes out.
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
// Each step is a package in placement/internal. schedule.go calls them in this order:
//
//  1. hub finds the available clusters: those of the ManagedClusterSets that are bound to
//     the namespace of the Placement and that it names, or of all bound ones ([Availability]).
//  2. filter removes clusters that match none of the predicates, which are label selectors,
//     claim selectors and CEL expressions, and clusters with taints that are not tolerated.
//     Each filter reports the clusters that it removed, with a [Reason] ([Filtered]).
//  3. prioritizer gives the remaining [Candidate]s scores from -100 to 100. The weighted
//     sum ranks the candidates. Of candidates with equal sums, those without an untolerated
//     taint PreferNoSelect come first; then the name decides, or a lot with
//     celset.dev/tie-break.
//  4. spread picks spec.numberOfClusters of the candidates in order of their rank, as far
//     as spec.spreadPolicy allows.
//  5. decision divides the selected clusters into groups, and these into slices of
//     [MaxSliceLength], one for each PlacementDecision ([Decision]). A cluster stays in its
//     slice if it can, so that few objects are written.
//
// The package placement/report draws a result as text.
//
// # Errors never deselect
//
// If [Result.Decision] is nil, the former decision stands: nothing is written, and nothing
// is deleted. The decision is nil
//
//   - if the Placement is misconfigured: the condition PlacementMisconfigured names
//     plugin, field and, in CEL expressions, line and column;
//   - if an eligible ManagedClusterSet is invalid;
//   - with an error: the context ended, or the snapshot could not be read;
//   - if evaluations take longer than they may, so that the speed of a machine never
//     decides which clusters are selected: the condition PlacementEvaluationFailed names
//     the expression ([Overrun]);
//   - if no cluster is selected, and the evaluation failed on some cluster of the former
//     decision.
//
// Otherwise a cluster on which an expression fails is not selected, and the
// condition PlacementEvaluationFailed names the cluster. If no set is bound, or all sets
// are empty, the decision is empty, even if the Placement is misconfigured: unbinding a set
// always deselects its clusters.
//
// # Memory
//
// A [Scheduler] remembers the verdict of the predicates on each version of a cluster, for
// each generation of a Placement. After a change of one cluster it evaluates one. A verdict
// that read now() is found again at the next tick, and a verdict that read an
// AddOnPlacementScore after a change of the score. The memory never changes a result. If
// there was not enough time for all clusters, the next call evaluates the others, with the
// now() of the first call. [Result.Requeue] is the time at which to decide again though
// no object changed, and [Result.Reads] names the scores to watch. [Scheduler.Unchanged]
// reports whether the last result still holds, without making a new one.
package placement
