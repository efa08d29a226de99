// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// subsystem is the prefix of all metric names. It prevents conflicts with kube-scheduler's metrics on the same page, and with
// the names in KEP-5254, which a later Kubernetes will use. If a name is registered twice, the scheduler doesn't start.
const subsystem = "celset_scheduler"

// These are the upper bounds of histogram buckets. Two for each power of ten are enough to find slow operations. Three would
// only separate 20 ms from 40 ms. Default limits are bounds, so that operations over the limit can be counted.
var (
	// durations reaches beyond the default filterTimeout of 10 s.
	durations = []float64{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, .01, .03, .1, .3, 1, 3, 10, 30}
	// groupDurations are for work that takes a second at most, such as an attempt for a group.
	groupDurations = []float64{.01, .03, .1, .3, 1, 3}
	// steps reaches ten times the default of budget.steps, so that raised budgets fit.
	steps = []float64{0, 1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6}
	// spending reaches far beyond the default of budget.cost, so that raised budgets fit.
	spending = []float64{0, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8}
	// costs ends at the cost limit of one evaluation.
	costs = []float64{10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6}
)

// define creates the metrics without time series.
func (m *Metrics) define() {
	m.durations = histograms("allocation_duration_seconds",
		"Time to search for the devices of one pod on one node, by kind of constraint and by result.",
		durations, "constraint", "result")
	m.steps = histograms("allocation_steps",
		"Number of steps of the search for the devices of one pod on one node, by kind of constraint and by result. It is 0 if the answer was cached.",
		steps, "constraint", "result")
	m.spending = histograms("allocation_cost",
		"Cost of the search for the devices of one pod on one node, in CEL cost units, by result. Only searches with CEL device constraints or preferences count. It is 0 if the answer was cached.",
		spending, "result")
	m.nodeSets = histograms("node_set_duration_seconds",
		"Time to choose the nodes of a PodGroup with a node set constraint, by result. It includes the time to find the nodes that can take its pods.",
		groupDurations, "result")
	m.cost = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cel_expression_constraint_cost", Buckets: costs, StabilityLevel: metrics.ALPHA,
		Help: "Actual cost of one evaluation of a CEL device constraint on a complete set of devices, in CEL cost units.",
	})
	m.enrichments = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "device_attributes_duration_seconds", Buckets: groupDurations, StabilityLevel: metrics.ALPHA,
		Help: "Time to add the attributes of DeviceAttributes objects to the devices of all ResourceSlices. ResourceSlices that have not changed since the last time take almost no time. No scheduling cycle waits for it.",
	})
	m.evaluations = counters("constraint_evaluations_total",
		"Number of evaluations of CEL device constraints, by scope: a whole expression on a complete set of devices, or a part of an expression on one or two devices. The search uses parts to exclude devices early.", "scope")
	m.failures = counters("constraint_evaluation_failures_total",
		"Number of evaluations of CEL device constraints on complete sets of devices that failed and aborted the search, by reason.", "reason")
	m.compilations = counters("constraint_compilations_total",
		"Number of expressions of CEL device constraints that were compiled, by result.", "result")
	m.cuts = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "search_cuts_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of devices that the search skipped because no set with them can satisfy a CEL device constraint.",
	})
	m.outOfRange = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "resource_slices_out_of_range_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of ResourceSlices with amounts that are out of range. Capacities, counters and devices with such amounts are ignored.",
	})
	m.cached = counters("cache_requests_total",
		"Number of cache lookups, by cache and result. A cache contains results for all claims of a pod on a node, results of a CEL device constraint on a set of devices, or compiled expressions.", "cache", "result")
	m.preferences = counters("preference_searches_total",
		"Number of searches in which preferences chose the devices, by result: the best set of devices, or the best set that was found before a budget was exceeded.", "result")
	m.counts = counters("device_sets_counts_total",
		"Number of times that the scheduler counted the sets of devices that fit, by result: all shapes were counted, only some were counted, nothing had changed, or counting failed.", "result")
	m.publications = counters("device_sets_publications_total",
		"Number of times that the values of celset_scheduler_device_sets were written to a hub, by result. They are written when a value changes, and when half of their validity period is over.", "result")
	m.exhaustions = counters("budget_exhaustions_total",
		"Number of searches that exceeded a budget and ended the attempt to schedule a pod, by budget.", "budget")
	m.unfit = counters("nodes_unfit_by_failure_total",
		"Number of times that a node did not fit a pod because a CEL device constraint with failurePolicy NodeDoesNotFit failed on devices of the node, by reason.", "reason")
	m.preemptions = counters("device_preemption_attempts_total",
		"Number of searches for pods to evict for the devices of a pod, by result.", "result")
	m.victims = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "device_preemption_victims_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of pods that were chosen to be evicted for the devices of a pod.",
	})
	m.wasted = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "device_preemption_victims_without_bind_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of pods that were chosen to be evicted for the devices of a pod that was not bound while the devices were held for it. Holds that ended in favour of another pod do not count.",
	})
	m.holdsEnded = counters("device_holds_ended_total",
		"Number of holds of devices that ended, by reason. Devices are held for a pod for which other pods were evicted.", "end")
	m.pendingWrites = counters("allocation_writes_in_doubt_total",
		"Number of writes of allocations that the API server did not answer, by the result that the scheduler found out later.", "result")
	m.refusals = counters("refused_scheduling_attempts_total",
		"Number of scheduling attempts that were refused because of the claims of the pod before any node was checked, by reason.", "reason")
}

func histograms(name, help string, buckets []float64, labels ...string) *metrics.HistogramVec {
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: name, Help: help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	}, labels)
}

func counters(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, labels)
}

// begin creates the time series of counters with value 0. Otherwise rates and alerts would miss the first increment.
func (m *Metrics) begin() {
	for vector, values := range map[*metrics.CounterVec][]string{
		m.evaluations:   {scopeSet, scopePart},
		m.failures:      failures,
		m.unfit:         failuresOnDevices,
		m.compilations:  {compiled, refused},
		m.preferences:   {preferenceBest, preferenceBestFound},
		m.counts:        {string(CountComplete), string(CountPartial), string(CountUnchanged), string(CountFailed)},
		m.publications:  {string(PublicationWritten), string(PublicationFailed)},
		m.exhaustions:   {budgetCost, budgetSteps},
		m.preemptions:   {PreemptionNominated, PreemptionNotHelpful, PreemptionNotEligible, PreemptionFailed},
		m.holdsEnded:    HoldEnds,
		m.pendingWrites: PendingWriteOutcomes,
		m.refusals:      {string(RefusalGate), string(RefusalConstraint), string(RefusalSelector), string(RefusalPreparing), string(RefusalBackOff), string(RefusalShare)},
	} {
		for _, value := range values {
			vector.WithLabelValues(value)
		}
	}
	for _, cache := range []string{cacheAnswers, cacheVerdicts, cacheExpressions} {
		for _, result := range []string{hit, miss} {
			m.cached.WithLabelValues(cache, result)
		}
	}
}
