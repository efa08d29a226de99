// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics measures how Placements are decided, and shows it on a registry:
//
//	measured, err := metrics.New(metrics.Options{Registerer: ctrlmetrics.Registry})
//	config, err := measured.Scheduling()
//	err = controller.Add(mgr, controller.Options{Scheduler: config, Observer: measured})
//
// # What is measured
//
//   - celset_placement_scheduling_duration_seconds{result}: to decide one Placement,
//     without writing; decided, or standing where the former decision stands, or error.
//   - celset_placement_plugin_duration_seconds{plugin_type, plugin_name}: one filter,
//     prioritizer or spreading, on all clusters of one Placement.
//   - celset_placement_writing_duration_seconds{result}: to write the
//     PlacementDecisions of one Placement; written, conflict or error. Nothing is
//     observed where there is nothing to write.
//   - celset_placement_cache_requests_total{cache, result}: how often a cache was asked for what
//     predicates say about a cluster, or for a compiled expression, and whether it had the answer.
//   - celset_placement_turns_total{queue, result}: how often the expressions of a
//     Placement were evaluated, done, continued, failed or unchanged, in the usual queue or
//     in the slow one.
//   - celset_placement_values_out_of_range_total{plugin_name}: amounts and scores that
//     prioritizers read and that can't be true.
//   - celset_placement_undecodable_objects_total{resource}: objects of the API server
//     that can't be decoded.
//   - celset_placement_cel_evaluation_duration_seconds and
//     celset_placement_cel_evaluation_cost: one evaluation of one expression on one
//     cluster. Selection without CEL is not observed, and no slower.
//   - celset_placement_cel_evaluation_failures_total{reason} and
//     celset_placement_cel_compilations_total{result}.
//
// No label has the name of an object: the values are those listed here, and their
// number does not grow with the hub. What became of one Placement is in its status,
// and in the answers of package debug.
package metrics
