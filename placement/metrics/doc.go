// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics measures decisions about Placements and registers the metrics:
//
//	measured, err := metrics.New(metrics.Options{Registerer: ctrlmetrics.Registry})
//	config, err := measured.Scheduling()
//	err = controller.Add(mgr, controller.Options{Scheduler: config, Observer: measured})
//
// # Metrics
//
//   - celset_placement_scheduling_duration_seconds{result}: time to decide one Placement, without writing; decided, standing
//     (the former decision is kept) or error.
//   - celset_placement_plugin_duration_seconds{plugin_type, plugin_name}: time of one filter, prioritizer or spread plugin on
//     all clusters of one Placement.
//   - celset_placement_writing_duration_seconds{result}: time to write the PlacementDecisions of one Placement; written,
//     conflict or error. A decision without changes is not counted.
//   - celset_placement_cache_requests_total{cache, result}: lookups of predicate results for a cluster or of compiled
//     expressions, by hit and miss.
//   - celset_placement_turns_total{queue, result}: turns of a Placement in the usual or the slow queue; done, continued, failed
//     or unchanged.
//   - celset_placement_values_out_of_range_total{plugin_name}: impossible quantities and scores that prioritizers read.
//   - celset_placement_undecodable_objects_total{resource}: objects of the API server that can't be decoded.
//   - celset_placement_cel_evaluation_duration_seconds and celset_placement_cel_evaluation_cost: one evaluation of one
//     expression on one cluster. Selection without CEL is not measured and not slowed down.
//   - celset_placement_cel_evaluation_failures_total{reason} and celset_placement_cel_compilations_total{result}.
//
// No label has the name of an object, so the number of time series doesn't grow with the hub. The result for one Placement is
// in its status and in the answers of package debug.
package metrics
