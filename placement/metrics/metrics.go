// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

// Options configure [Metrics].
type Options struct {
	// Registerer registers the metrics. It is required.
	Registerer metrics.Registerer
	// Now returns the current time. Nil means the system clock.
	Now func() time.Time
}

// Metrics counts and measures decisions about Placements. It is safe for concurrent use.
type Metrics struct {
	now func() time.Time

	scheduling *metrics.HistogramVec
	plugins    *metrics.HistogramVec
	writing    *metrics.HistogramVec
	cached     *metrics.CounterVec
	turns      *metrics.CounterVec
	outOfRange *metrics.CounterVec

	undecodable *metrics.CounterVec

	evaluationTime *metrics.Histogram
	evaluationCost *metrics.Histogram
	failures       *metrics.CounterVec
	compilations   *metrics.CounterVec
}

var (
	_ placement.Observer = (*Metrics)(nil)
	_ cel.Timer          = (*Metrics)(nil)
)

// New creates and registers metrics. It returns an error if they are already registered.
func New(options Options) (*Metrics, error) {
	if options.Registerer == nil {
		return nil, errors.New("metrics of placement: the registry is missing")
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	m := &Metrics{now: options.Now}
	m.define()
	for _, one := range []metrics.Registerable{
		m.scheduling, m.plugins, m.writing, m.cached, m.turns, m.outOfRange, m.undecodable, m.evaluationTime, m.evaluationCost, m.failures, m.compilations,
	} {
		// Create is called for registries that, unlike Kubernetes' registries, don't call it themselves.
		one.Create(nil)
		if err := options.Registerer.Register(one); err != nil {
			return nil, fmt.Errorf("register metric %s: %w", one.FQName(), err)
		}
	}
	m.start()
	return m, nil
}

// Scheduling returns the configuration of a [placement.Scheduler] that reports its decisions and its CEL evaluations to m.
func (m *Metrics) Scheduling() (placement.Config, error) {
	environment, err := cluster.NewEnvironment(cel.Config{Observer: m})
	if err != nil {
		return placement.Config{}, err
	}
	return placement.Config{Environment: environment, Observer: m}, nil
}

// stopwatch returns a function that returns the seconds since stopwatch was called.
func (m *Metrics) stopwatch() func() float64 {
	start := m.now()
	return func() float64 { return m.now().Sub(start).Seconds() }
}
