// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-base/metrics"

	"github.com/celset/celset/allocator"
)

// ObserveAllocation must be called at the start of a search for the devices of claims on one node. At the end of the search,
// end must be called with its results: whether devices were found, the work and the error. byDefault means that a class adds a
// CEL constraint by default to claims that refer to none.
func (m *Metrics) ObserveAllocation(claims []*resourceapi.ResourceClaim, byDefault bool) (end func(found bool, stats allocator.Stats, err error)) {
	start := m.now()
	return func(found bool, stats allocator.Stats, err error) {
		duration := m.now().Sub(start)
		constraint, outcome := constraintOf(claims...), string(outcomeOf(found, err))
		if byDefault {
			constraint = ConstraintCEL
		}
		m.durations.WithLabelValues(string(constraint), outcome).Observe(duration.Seconds())
		m.steps.WithLabelValues(string(constraint), outcome).Observe(float64(stats.Steps))
		if constraint == ConstraintCEL || stats.PreferencesBest+stats.PreferencesBestFound > 0 {
			m.spending.WithLabelValues(outcome).Observe(float64(stats.Cost))
		}
		if failure, ok := errors.AsType[*allocator.BudgetError](err); ok {
			m.exhaustions.WithLabelValues(budgetOf(failure)).Inc()
		}
		if failure, ok := errors.AsType[*allocator.EvaluationError](err); ok {
			m.unfit.WithLabelValues(string(failure.Reason)).Inc()
		}
		m.add(stats)
	}
}

// ObserveNodeSet must be called before nodes are chosen for a group, and end after that. found is true if nodes were chosen.
// err is an error that is not just a lack of suitable nodes.
func (m *Metrics) ObserveNodeSet() (end func(found bool, err error)) {
	start := m.now()
	return func(found bool, err error) {
		m.nodeSets.WithLabelValues(string(outcomeOf(found, err))).Observe(m.now().Sub(start).Seconds())
	}
}

// add adds the work of a search to the counters. Most searches find a cached result and take microseconds. Looking up a time
// series takes as long, so add does not look up a time series to add zero.
func (m *Metrics) add(stats allocator.Stats) {
	count(m.evaluations, stats.Evaluations, scopeSet)
	count(m.evaluations, stats.TableEvaluations, scopePart)
	count(m.cached, stats.AnswersKnown, cacheAnswers, hit)
	if stats.AnswersKnown == 0 && stats.Steps > 0 {
		count(m.cached, 1, cacheAnswers, miss)
	}
	count(m.cached, stats.CacheHits-stats.AnswersKnown, cacheVerdicts, hit)
	count(m.cached, stats.Evaluations, cacheVerdicts, miss)
	count(m.preferences, stats.PreferencesBest, preferenceBest)
	count(m.preferences, stats.PreferencesBestFound, preferenceBestFound)
	m.cuts.Add(float64(stats.Cuts))
}

func count(vector *metrics.CounterVec, n int64, values ...string) {
	if n > 0 {
		vector.WithLabelValues(values...).Add(float64(n))
	}
}

// ObserveRefusal counts a pod that was refused before any node was examined.
func (m *Metrics) ObserveRefusal(reason Refusal) {
	m.refusals.WithLabelValues(string(reason)).Inc()
}

// ObserveOutOfRange counts a ResourceSlice that has amounts out of range.
func (m *Metrics) ObserveOutOfRange() { m.outOfRange.Inc() }

// ObserveEvaluation implements [github.com/celset/celset/cel.Observer].
func (m *Metrics) ObserveEvaluation(_ string, cost uint64, err error) {
	m.cost.Observe(float64(cost))
	if err != nil {
		m.failures.WithLabelValues(failureOf(err)).Inc()
	}
}

// ObserveCompilation implements [github.com/celset/celset/cel.Observer].
func (m *Metrics) ObserveCompilation(_ string, known bool, err error) {
	if known {
		m.cached.WithLabelValues(cacheExpressions, hit).Inc()
		return
	}
	m.cached.WithLabelValues(cacheExpressions, miss).Inc()
	result := compiled
	if err != nil {
		result = refused
	}
	m.compilations.WithLabelValues(result).Inc()
}
