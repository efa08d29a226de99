// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "k8s.io/component-base/metrics"

// subsystem is the prefix of all names. It keeps them apart from kube-scheduler's metrics on the same page, and from the names
// in KEP-5254, which a later Kubernetes will use. A name that is registered twice prevents the scheduler from starting.
const subsystem = "celset_scheduler"

// Upper bounds of buckets. Two for each power of ten are enough to find slow operations; three would only separate 20 ms from 40
// ms. The default limits are bounds, so that exceeded limits can be counted.
var (
	// durations reach beyond the default filterTimeout of 10 s.
	durations = []float64{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, .01, .03, .1, .3, 1, 3, 10, 30}
	// groupDurations reach beyond the time limit of an attempt.
	groupDurations = []float64{.01, .03, .1, .3, 1, 3}
	// steps reach ten times the default of budget.steps, for raised budgets.
	steps = []float64{0, 1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6}
	// spending reaches far beyond the default of budget.cost, for raised budgets.
	spending = []float64{0, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8}
	// costs reach the limit of one evaluation.
	costs = []float64{10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6}
)

// define creates the metrics without values.
func (m *Metrics) define() {
	m.durations = histograms("allocation_duration_seconds",
		"Time to search for the devices of one pod on one node, by the kind of constraints that its claims have and by result.",
		durations, "constraint", "result")
	m.steps = histograms("allocation_steps",
		"Number of steps that the search for the devices of one pod on one node took, by the kind of constraints that its claims have and by result. It is 0 if the answer was known.",
		steps, "constraint", "result")
	m.spending = histograms("allocation_cost",
		"Cost, in CEL cost units, that was charged to the budgets of the search for the devices of one pod with a CEL device constraint, or with devices that preferences chose, on one node, by result. It is 0 if the answer was known.",
		spending, "result")
	m.nodeSets = histograms("node_set_duration_seconds",
		"Time to choose the nodes of a PodGroup with a node set constraint, with finding out which nodes can take its pods, by result.",
		groupDurations, "result")
	m.cost = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "cel_expression_constraint_cost", Buckets: costs, StabilityLevel: metrics.ALPHA,
		Help: "Actual cost, in CEL cost units, of one evaluation of a CEL device constraint on a complete set of devices.",
	})
	m.evaluations = counters("constraint_evaluations_total",
		"Number of evaluations of CEL device constraints, by scope: of whole expressions on complete sets of devices, or of parts of them on one or two devices, which tell the search early what can't be.", "scope")
	m.failures = counters("constraint_evaluation_failures_total",
		"Number of evaluations of CEL device constraints on complete sets of devices that failed and aborted the search, by reason.", "reason")
	m.compilations = counters("constraint_compilations_total",
		"Number of expressions of CEL device constraints that were compiled, by result.", "result")
	m.cuts = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "search_cuts_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of devices that the search did not try, or gave up at once, because no set with them could satisfy a CEL device constraint.",
	})
	m.outOfRange = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "resource_slices_out_of_range_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of ResourceSlices that were seen with amounts that can't be computed with. What has them is not used.",
	})
	m.cached = counters("cache_requests_total",
		"Number of times that a cache was asked, by cache and result. The cache has answers to all claims of a pod on such a node, verdicts of a CEL device constraint on such a set, or compiled expressions.", "cache", "result")
	m.preferences = counters("preference_searches_total",
		"Number of searches whose devices preferences chose, by result: no set of devices is better, or the best one that was found before a budget was used up.", "result")
	m.counts = counters("device_sets_counts_total",
		"Number of times that the sets of devices which fit were counted, by result: of all shapes, of some only, again without a change, or not at all.", "result")
	m.publications = counters("device_sets_publications_total",
		"Number of times that the numbers in celset_scheduler_device_sets were written on a hub, by result. Nothing is written unless a number changed or their time is half over.", "result")
	m.exhaustions = counters("budget_exhaustions_total",
		"Number of searches that used up a budget and aborted the scheduling of a pod, by budget.", "budget")
	m.unfit = counters("nodes_unfit_by_failure_total",
		"Number of times that a node did not fit a pod because a CEL device constraint with failurePolicy NodeDoesNotFit failed on devices of the node, by reason.", "reason")
	m.preemptions = counters("device_preemption_attempts_total",
		"Number of times that it was looked for pods to evict for the devices of a pod, by result.", "result")
	m.victims = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "device_preemption_victims_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of pods that were chosen to be evicted for the devices of a pod.",
	})
	m.wasted = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "device_preemption_victims_without_bind_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of pods that were chosen to be evicted for the devices of a pod that was not bound as long as these were held for it, unless another pod goes before it.",
	})
	m.holdsEnded = counters("device_holds_ended_total",
		"Number of times that devices were not held any longer for a pod for which others were evicted, by how that ended.", "end")
	m.pendingWrites = counters("allocation_writes_in_doubt_total",
		"Number of allocations that were written without being told what became of it, by what was found out.", "result")
	m.refusals = counters("refused_scheduling_attempts_total",
		"Number of times that the scheduling of a pod was refused because of its claims before any node was looked at, by reason.", "reason")
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

// begin sets counters to zero, so that rates and alerts include the first increment.
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
