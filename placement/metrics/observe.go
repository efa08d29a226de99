// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/placement"
)

// ObserveSchedule implements [placement.Observer].
func (m *Metrics) ObserveSchedule() (end func(*placement.Result, error)) {
	elapsed := m.stopwatch()
	return func(result *placement.Result, err error) {
		outcome := decided
		switch {
		case err != nil:
			outcome = failed
		case result.Decision == nil:
			outcome = former
		}
		m.scheduling.WithLabelValues(outcome).Observe(elapsed())
		m.cached.WithLabelValues(cacheMatches, hit).Add(float64(result.Remembered))
		m.cached.WithLabelValues(cacheMatches, miss).Add(float64(result.Evaluated))
		for name, n := range result.OutOfRange {
			m.outOfRange.WithLabelValues(pluginOf(name)).Add(float64(n))
		}
	}
}

// ObservePlugin implements [placement.Observer].
func (m *Metrics) ObservePlugin(kind, name string) (end func()) {
	elapsed := m.stopwatch()
	return func() { m.plugins.WithLabelValues(kind, pluginOf(name)).Observe(elapsed()) }
}

// pluginOf returns the value of the label for a plugin. Of AddOn/<resource>/<score> it keeps only the first part, because users
// choose the other parts.
func pluginOf(name string) string {
	plugin, _, _ := strings.Cut(name, "/")
	return plugin
}

// ObserveWriting must be called before the PlacementDecisions of a Placement are written. After that, end must be called with
// the error, or with nil.
func (m *Metrics) ObserveWriting() (end func(error)) {
	elapsed := m.stopwatch()
	return func(err error) {
		outcome := written
		switch {
		case apierrors.IsConflict(err):
			outcome = conflict
		case err != nil:
			outcome = failed
		}
		m.writing.WithLabelValues(outcome).Observe(elapsed())
	}
}

// ObserveTurn counts a turn of a Placement. turn is the result: "done", "continued", "failed" or "unchanged". expensive is true
// if the Placement is in the queue of expensive Placements.
func (m *Metrics) ObserveTurn(turn string, expensive bool) {
	queue := usual
	if expensive {
		queue = slow
	}
	m.turns.WithLabelValues(queue, turn).Inc()
}

// ObserveUndecodable counts an object from the API server that can't be decoded. resource is the label.
func (m *Metrics) ObserveUndecodable(resource string) { m.undecodable.WithLabelValues(resource).Inc() }

// Now implements [cel.Timer].
func (m *Metrics) Now() time.Time { return m.now() }

// ObserveDuration implements [cel.Timer].
func (m *Metrics) ObserveDuration(_ string, duration time.Duration) {
	m.evaluationTime.Observe(duration.Seconds())
}

// ObserveEvaluation implements [cel.Observer].
func (m *Metrics) ObserveEvaluation(_ string, cost uint64, err error) {
	m.evaluationCost.Observe(float64(cost))
	if err == nil {
		return
	}
	reason := unknown
	if known := (*cel.Error)(nil); errors.As(err, &known) {
		reason = string(known.Reason)
	}
	m.failures.WithLabelValues(reason).Inc()
}

// ObserveCompilation implements [cel.Observer].
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
