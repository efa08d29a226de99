// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/celset/celset/admission/guard"
)

const subsystem = "celset_guard"

// admitted is the metrics' label for writes that the Guard admitted.
const admitted = "admitted"

// Metrics are the metrics of a process. All methods may be called on a nil Metrics, and then do nothing.
type Metrics struct {
	judgements *metrics.HistogramVec
	// The gauges have the values of this process' Guard when looked was last called.
	active, claims, unsettled, twice *metrics.Gauge
}

// NewMetrics registers the metrics and sets each counter to zero, so that rates and alerts notice the first count. It returns
// an error if the metrics are already registered.
func NewMetrics(registry metrics.Registerer) (*Metrics, error) {
	m := &Metrics{
		judgements: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Subsystem: subsystem, Name: "judgement_duration_seconds", Buckets: []float64{3e-5, 1e-4, 3e-4, 1e-3, 3e-3, .01, .03, .1, .3, 1, 3}, StabilityLevel: metrics.ALPHA,
			Help: "Time to check one write that allocates devices to a claim, by result.",
		}, []string{"result"}),
		active:    gauge("active", "1 if this replica checks allocations, otherwise 0."),
		claims:    gauge("claims", "Number of claims with allocated devices or with an admitted allocation. It is 0 on a replica that does not check allocations."),
		unsettled: gauge("unsettled_writes", "Number of admitted allocations that are not yet known to be stored or lost."),
		twice:     gauge("devices_allocated_twice", "Number of devices that are allocated as a whole to several claims, because one of the writes bypassed the guard."),
	}
	for _, one := range []metrics.Registerable{m.judgements, m.active, m.claims, m.unsettled, m.twice} {
		// Create the metric, because this registry does not do so on registration, unlike Kubernetes' own registries.
		one.Create(nil)
		if err := registry.Register(one); err != nil {
			return nil, fmt.Errorf("register metric %s: %w", one.FQName(), err)
		}
	}
	for _, outcome := range []string{admitted, string(guard.Overlaps), string(guard.Unconfirmed), string(guard.Overloaded), string(guard.Invalid), inactive} {
		m.judgements.WithLabelValues(outcome)
	}
	return m, nil
}

func gauge(name, help string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA})
}

// looked sets the gauges to the values of a Guard. g is nil if this replica does not judge.
func (m *Metrics) looked(g *guard.Guard) {
	if m == nil {
		return
	}
	var counts guard.Counts
	m.active.Set(0)
	if g != nil {
		counts = g.Counts()
		m.active.Set(1)
	}
	m.claims.Set(float64(counts.Claims))
	m.unsettled.Set(float64(counts.Admitted))
	m.twice.Set(float64(counts.Twice))
}

func (m *Metrics) judged(refusal *guard.Refusal, took time.Duration) {
	if m == nil {
		return
	}
	outcome := admitted
	if refusal != nil {
		outcome = string(refusal.Reason)
	}
	m.judgements.WithLabelValues(outcome).Observe(took.Seconds())
}
