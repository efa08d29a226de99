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
//  1. Available: the clusters of the ManagedClusterSets that are bound to the
//     namespace of the Placement and that it names, or of all bound ones ([Availability]).
//  2. Filters: a cluster must match one of the predicates, that is its label selector,
//     claim selector and CEL expressions, and its taints must be tolerated. Each
//     filter reports what it removed with a [Reason] ([Filtered]).
//  3. Prioritizers give the remaining [Candidate]s scores from -100 to 100; the sum,
//     weighted, ranks them. Ties go to clusters without an untolerated taint
//     PreferNoSelect, then by name, or by lot with celset.dev/tie-break.
//  4. spec.numberOfClusters of them are picked in order of rank, as far as
//     spec.spreadPolicy allows.
//  5. The selected clusters are divided into groups, and these into slices of
//     [MaxSliceLength], one for each PlacementDecision ([Decision]). Which slice of its
//     group a cluster is in depends on where it was: few objects are to be written.
//
// [Result.Describe] draws all of it as text.
//
// # What is wrong never deselects
//
// A nil [Result.Decision] says that the former decision stands: nothing is written,
// nothing deleted. So it is
//
//   - where the Placement is misconfigured: the condition PlacementMisconfigured names
//     plugin, field and, in CEL expressions, line and column;
//   - where an eligible ManagedClusterSet can't be understood;
//   - with an error: the context ended, or the snapshot could not be read;
//   - where evaluations take longer than they may: time is not to say who is selected,
//     and the condition PlacementEvaluationFailed names what takes it ([Overrun]);
//   - where no cluster is selected, and some of the former ones only because the
//     evaluation of their expressions failed.
//
// Otherwise a cluster on which an expression fails is not selected, and the
// condition PlacementEvaluationFailed names it. If there is nothing to choose from,
// since no set is bound or all are empty, no predicate matters and the decision is
// empty, even that of a misconfigured Placement: who unbinds a set is obeyed.
//
// # What is remembered
//
// A [Scheduler] remembers, for each generation of a Placement, what its predicates
// say of each version of a cluster, and of the AddOnPlacementScores that they looked
// at: after a change of one cluster one is evaluated. What was said at a tick of now() is
// asked again at the next one. The results are those of a new Scheduler. Where time was
// too short for all clusters, the next call goes on with the others, and with the now() of
// the first one. [Result.Requeue] is when to ask again though nothing changed,
// [Result.Reads] which scores to watch. [Scheduler.Unchanged] reports whether the last
// result stands, without a new one.
package placement
