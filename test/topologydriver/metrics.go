// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"fmt"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/celset/celset/test/topologydriver/checkpoint"
)

// A Registry registers metrics. An example is [metrics.KubeRegistry].
type Registry interface {
	Register(metrics.Registerable) error
}

// Metrics are the metrics of all drivers of a process.
type Metrics struct {
	claims, devices, publishedDevices *metrics.GaugeVec
	durations                         *metrics.HistogramVec
	doubles, publishingFailures       *metrics.CounterVec
}

// The operations that the kubelet requests, and their results, as label values.
const (
	operationPrepare   = "prepare"
	operationUnprepare = "unprepare"

	outcomeDone   = "done"
	outcomeFailed = "failed"
)

const subsystem = "celset_topology_driver"

// durations are the histogram buckets, in seconds, for an operation that writes two small files to a fast or slow disk.
var durations = []float64{1e-4, 3e-4, 1e-3, 3e-3, .01, .03, .1, .3, 1, 3, 10}

// NewMetrics registers the metrics of the named drivers and initializes each to zero, so that rates and alerts see the first
// increment. It returns an error if the registry already has metrics of these names.
func NewMetrics(registry Registry, drivers ...string) (*Metrics, error) {
	m := &Metrics{
		claims:  gauges("prepared_claims", "Number of prepared claims on the node."),
		devices: gauges("prepared_devices", "Number of devices that are prepared for a claim on the node. Devices prepared with admin access do not count."),
		publishedDevices: gauges("published_devices",
			"Number of devices that the driver publishes for the node."),
		durations: metrics.NewHistogramVec(&metrics.HistogramOpts{
			Subsystem: subsystem, Name: "claim_duration_seconds", Buckets: durations, StabilityLevel: metrics.ALPHA,
			Help: "Time to prepare or unprepare one claim, by operation and result.",
		}, []string{"driver", "operation", "result"}),
		doubles: counters("double_allocations_total",
			"Number of times that the driver refused to prepare a device for a claim because the device is prepared for another claim."),
		publishingFailures: counters("publishing_failures_total",
			"Number of failed writes of ResourceSlices."),
	}
	for _, one := range []metrics.Registerable{m.claims, m.devices, m.publishedDevices, m.durations, m.doubles, m.publishingFailures} {
		if err := registry.Register(one); err != nil {
			return nil, fmt.Errorf("register metric %s: %w", one.FQName(), err)
		}
	}
	for _, driver := range drivers {
		m.begin(driver)
	}
	return m, nil
}

func gauges(name, help string) *metrics.GaugeVec {
	return metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, []string{"driver"})
}

func counters(name, help string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA,
	}, []string{"driver"})
}

// begin creates the time series of a driver with value zero.
func (m *Metrics) begin(driver string) {
	for _, gauge := range []*metrics.GaugeVec{m.claims, m.devices, m.publishedDevices} {
		gauge.WithLabelValues(driver)
	}
	for _, counter := range []*metrics.CounterVec{m.doubles, m.publishingFailures} {
		counter.WithLabelValues(driver)
	}
	for _, operation := range []string{operationPrepare, operationUnprepare} {
		for _, outcome := range []string{outcomeDone, outcomeFailed} {
			m.durations.WithLabelValues(driver, operation, outcome)
		}
	}
}

func (m *Metrics) prepared(driver string, state checkpoint.State) {
	m.claims.WithLabelValues(driver).Set(float64(len(state.Claims)))
	m.devices.WithLabelValues(driver).Set(float64(state.Devices()))
}

func (m *Metrics) published(driver string, devices int) {
	m.publishedDevices.WithLabelValues(driver).Set(float64(devices))
}

func (m *Metrics) observe(driver, operation string, begin time.Time, err error) {
	outcome := outcomeDone
	if err != nil {
		outcome = outcomeFailed
	}
	m.durations.WithLabelValues(driver, operation, outcome).Observe(time.Since(begin).Seconds())
}

func (m *Metrics) doubleAllocation(driver string) { m.doubles.WithLabelValues(driver).Inc() }

func (m *Metrics) publishingFailed(driver string) { m.publishingFailures.WithLabelValues(driver).Inc() }
