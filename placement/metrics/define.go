// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"k8s.io/component-base/metrics"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/placement"
)

const subsystem = "celset_placement"

// Values of labels.
const (
	decided  = "decided"
	former   = "standing"
	written  = "written"
	conflict = "conflict"
	failed   = "error"

	cacheMatches     = "matches"
	cacheExpressions = "expressions"

	hit  = "hit"
	miss = "miss"

	compiled  = "compiled"
	refused   = "refused"
	usual     = "usual"
	slow      = "slow"
	done      = "done"
	continued = "continued"
	overran   = "failed"
	unchanged = "unchanged"
	// addOn is the label value for all prioritizers that read AddOnPlacementScores.
	addOn = "AddOn"
	// unknown is the value of the label "reason" if the error of an evaluation contains no reason.
	unknown = "Unknown"
)

// durations has buckets from a microsecond to minutes, a range beyond all expected durations.
func durations() []float64 { return metrics.ExponentialBuckets(1e-6, 4, 14) }

// costs has buckets that go beyond the limit of one evaluation.
func costs() []float64 { return metrics.ExponentialBuckets(1, 4, 12) }

// define creates the metrics without values.
func (m *Metrics) define() {
	m.scheduling = durationsBy("scheduling_duration_seconds",
		"Time to decide one Placement on a snapshot of the hub, without writing, by result: decided, standing (the former decision stands) or error.", "result")
	m.plugins = durationsBy("plugin_duration_seconds",
		"Time that one plugin takes on all clusters of one Placement, by its type (filter, prioritizer or spread) and name. All AddOn prioritizers are named AddOn.", "plugin_type", "plugin_name")
	m.writing = durationsBy("writing_duration_seconds",
		"Time to write the PlacementDecisions of one Placement where they differ from what is decided, by result: written, conflict (somebody else changed them, it is tried again) or error.", "result")
	m.cached = countBy("cache_requests_total",
		"Number of times that a cache was asked, by cache and result. The cache has what the predicates of a Placement say about a cluster, until something that it depends on changes, or compiled expressions.", "cache", "result")
	m.turns = countBy("turns_total",
		"Number of times that the CEL expressions of a Placement were evaluated, by the queue that it came from (usual, or slow if it is expensive) and the result: done, continued (it goes on when others had their turn), failed (it takes too long, so the former decision stands) or unchanged (the clusters that have changed make no difference to it, and no other cluster was looked at).", "queue", "result")
	m.outOfRange = countBy("values_out_of_range_total",
		"Number of values, counted each time that they are read, that are not in their range, by the prioritizer that reads them: an amount of a resource that is negative or too large to be true counts as missing, a score as the nearest one in the range.", "plugin_name")
	m.undecodable = countBy("undecodable_objects_total",
		"Number of times that the API server answered with an object that can't be decoded, by its resource: it is read without its status, or left out.", "resource")
	m.evaluationTime = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cel_evaluation_duration_seconds", Buckets: durations(), StabilityLevel: metrics.ALPHA,
		Help: "Time to evaluate one CEL expression on one cluster.",
	})
	m.evaluationCost = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cel_evaluation_cost", Buckets: costs(), StabilityLevel: metrics.ALPHA,
		Help: "Cost of one evaluation of one CEL expression on one cluster, in CEL cost units. Evaluations end at the limit of one million.",
	})
	m.failures = countBy("cel_evaluation_failures_total",
		"Number of evaluations of CEL expressions that failed, so that the cluster is not selected by that predicate, by reason: Runtime, Type, CostLimit, Budget, Interrupted or Unknown.", "reason")
	m.compilations = countBy("cel_compilations_total",
		"Number of CEL expressions that were compiled, by result: compiled, or refused because the expression is wrong.", "result")
}

func durationsBy(name, help string, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: name, Help: help, Buckets: durations(), StabilityLevel: metrics.ALPHA,
	}, labels)
}

func countBy(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, labels)
}

// start sets counters to zero, so that rates and alerts include the first increment.
func (m *Metrics) start() {
	for vector, values := range map[*metrics.CounterVec][]string{
		m.compilations: {compiled, refused},
		m.undecodable:  {"managedclusters", "addonplacementscores", "placements", "placementdecisions"},
		m.outOfRange:   {placement.ResourceAllocatableCPU, placement.ResourceAllocatableMemory, addOn},
		m.failures: {
			string(cel.ReasonRuntime), string(cel.ReasonType), string(cel.ReasonCostLimit), string(cel.ReasonBudget),
			string(cel.ReasonInterrupted), unknown,
		},
	} {
		for _, value := range values {
			vector.WithLabelValues(value)
		}
	}
	for _, cache := range []string{cacheMatches, cacheExpressions} {
		for _, result := range []string{hit, miss} {
			m.cached.WithLabelValues(cache, result)
		}
	}
	for _, queue := range []string{usual, slow} {
		for _, outcome := range []string{done, continued, overran, unchanged} {
			m.turns.WithLabelValues(queue, outcome)
		}
	}
}
