// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync/atomic"

	"k8s.io/component-base/metrics"
)

// collector exports the current values of a source at each scrape. Before the source is set, it exports nothing, because zero
// would be wrong.
type collector[T any] struct {
	metrics.BaseStableCollector
	descs []*metrics.Desc
	// show calls value once for each time series, with one of descs.
	show   func(known T, value func(desc *metrics.Desc, value float64, labels ...string))
	source atomic.Pointer[T]
}

func newDesc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(name, help, labels, nil, metrics.ALPHA, "")
}

// setSource sets the source. All profiles of a scheduler have the same source, so each may call setSource.
func (c *collector[T]) setSource(known T) { c.source.Store(&known) }

// DescribeWithStability implements [metrics.StableCollector].
func (c *collector[T]) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// CollectWithStability implements [metrics.StableCollector].
func (c *collector[T]) CollectWithStability(values chan<- metrics.Metric) {
	if known := c.source.Load(); known != nil {
		c.show(*known, func(desc *metrics.Desc, value float64, labels ...string) {
			values <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
		})
	}
}
