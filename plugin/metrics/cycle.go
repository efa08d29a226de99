// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
)

const cycleName = subsystem + "_scheduling_cycle_age_seconds"

// cycle shows how long nothing was heard of the scheduling cycle, when somebody asks.
type cycle struct {
	metrics.BaseStableCollector
	desc *metrics.Desc
	age  atomic.Pointer[func() time.Duration]
}

func newCycle() *cycle {
	return &cycle{desc: metrics.NewDesc(cycleName,
		"Time since the scheduling cycle that is running, of any profile, last made progress. It is 0 if none is running.",
		nil, nil, metrics.ALPHA, "")}
}

// WatchCycle says who knows for how long nothing was heard of the scheduling cycle.
func (m *Metrics) WatchCycle(age func() time.Duration) { m.cycle.age.Store(&age) }

// DescribeWithStability implements [metrics.StableCollector].
func (c *cycle) DescribeWithStability(descs chan<- *metrics.Desc) { descs <- c.desc }

// CollectWithStability implements [metrics.StableCollector]. There is nothing to show in a
// program without a watchdog.
func (c *cycle) CollectWithStability(values chan<- metrics.Metric) {
	if age := c.age.Load(); age != nil {
		values <- metrics.NewLazyConstMetric(c.desc, metrics.GaugeValue, (*age)().Seconds())
	}
}
