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
	// addOn is the value of the label for all prioritizers that read AddOnPlacementScores.
	addOn = "AddOn"
	// unknown is the value of the label "reason" for an error of an evaluation that has no reason.
	unknown = "Unknown"
)

// durations returns buckets from a microsecond to minutes, which is beyond all expected durations.
func durations() []float64 { return metrics.ExponentialBuckets(1e-6, 4, 14) }

// costs returns buckets that reach beyond the cost limit of one evaluation.
func costs() []float64 { return metrics.ExponentialBuckets(1, 4, 12) }

// define creates the metrics without time series.
func (m *Metrics) define() {
	m.scheduling = durationsBy("scheduling_duration_seconds",
		"Time to decide one Placement, without writing the decision, by result: decided, standing (the previous decision stays in effect) or error.", "result")
	m.plugins = durationsBy("plugin_duration_seconds",
		"Time that one plugin takes on all clusters of one Placement, by type (filter, prioritizer or spread) and name. All AddOn prioritizers have the name AddOn.", "plugin_type", "plugin_name")
	m.writing = durationsBy("writing_duration_seconds",
		"Time to write the changed PlacementDecisions of one Placement, by result: written, conflict (another client changed them, so the write is tried again) or error.", "result")
	m.cached = countBy("cache_requests_total",
		"Number of cache lookups, by cache and result. A cache contains results of the predicates of a Placement for a cluster, or compiled expressions.", "cache", "result")
	m.turns = countBy("turns_total",
		"Number of times that the CEL expressions of a Placement were evaluated, by queue (usual, or slow for expensive Placements) and result: done, continued (the evaluation continues after other Placements), failed (the evaluation takes too long, so the previous decision stays in effect) or unchanged (only changed clusters were evaluated, and the decision is the same).", "queue", "result")
	m.outOfRange = countBy("values_out_of_range_total",
		"Number of reads of values that are out of range, by prioritizer. An amount of a resource that is negative or implausibly large counts as missing. A score is replaced with the nearest score in the range.", "plugin_name")
	m.undecodable = countBy("undecodable_objects_total",
		"Number of objects from the API server that can't be decoded, by resource. Such an object is used without its status, or ignored.", "resource")
	m.evaluationTime = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cel_evaluation_duration_seconds", Buckets: durations(), StabilityLevel: metrics.ALPHA,
		Help: "Time to evaluate one CEL expression on one cluster.",
	})
	m.evaluationCost = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cel_evaluation_cost", Buckets: costs(), StabilityLevel: metrics.ALPHA,
		Help: "Cost of one evaluation of one CEL expression on one cluster, in CEL cost units. Evaluations end at the limit of one million.",
	})
	m.failures = countBy("cel_evaluation_failures_total",
		"Number of failed evaluations of CEL expressions, by reason. The predicate does not select the cluster then. The reasons are Runtime, Type, CostLimit, Budget, Interrupted or Unknown.", "reason")
	m.compilations = countBy("cel_compilations_total",
		"Number of CEL expressions that were compiled, by result: compiled, or refused because the expression is invalid.", "result")
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

// start creates the time series of counters with value 0. Otherwise rates and alerts would miss the first increment.
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
