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

// Options describe [Metrics].
type Options struct {
	// Registerer is where they are shown; it must be given.
	Registerer metrics.Registerer
	// Now is the clock; nil is that of the machine.
	Now func() time.Time
}

// Metrics are told what happens and count it. They are safe for concurrent use.
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

// New registers metrics. It fails where such metrics are registered already.
func New(options Options) (*Metrics, error) {
	if options.Registerer == nil {
		return nil, errors.New("metrics of placement: there is no registry")
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	m := &Metrics{now: options.Now}
	m.define()
	for _, one := range []metrics.Registerable{
		m.scheduling, m.plugins, m.writing, m.cached, m.turns, m.outOfRange, m.undecodable, m.evaluationTime, m.evaluationCost, m.failures, m.compilations,
	} {
		// They are made here, since the registry is none of Kubernetes, which would do it.
		one.Create(nil)
		if err := options.Registerer.Register(one); err != nil {
			return nil, fmt.Errorf("register metric %s: %w", one.FQName(), err)
		}
	}
	m.start()
	return m, nil
}

// Scheduling returns the configuration of a [placement.Scheduler] that is measured,
// its CEL expressions, too.
func (m *Metrics) Scheduling() (placement.Config, error) {
	environment, err := cluster.NewEnvironment(cel.Config{Observer: m})
	if err != nil {
		return placement.Config{}, err
	}
	return placement.Config{Environment: environment, Observer: m}, nil
}

// stopwatch returns the seconds since it was made.
func (m *Metrics) stopwatch() func() float64 {
	start := m.now()
	return func() float64 { return m.now().Sub(start).Seconds() }
}
