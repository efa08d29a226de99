// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync/atomic"

	"k8s.io/component-base/metrics"
)

// collector shows what somebody knows at the time when it is asked. As long as nobody does there is
// nothing to show: zero would say that there is none.
type collector[T any] struct {
	metrics.BaseStableCollector
	descs []*metrics.Desc
	// show shows it, with a value of one of the descs.
	show  func(known T, value func(desc *metrics.Desc, value float64, labels ...string))
	known atomic.Pointer[T]
}

func newDesc(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(name, help, labels, nil, metrics.ALPHA, "")
}

// know has what is known from now on be shown. All profiles of a scheduler know the same, so it does not
// matter which of them says it last.
func (c *collector[T]) know(known T) { c.known.Store(&known) }

// DescribeWithStability implements [metrics.StableCollector].
func (c *collector[T]) DescribeWithStability(descs chan<- *metrics.Desc) {
	for _, desc := range c.descs {
		descs <- desc
	}
}

// CollectWithStability implements [metrics.StableCollector].
func (c *collector[T]) CollectWithStability(values chan<- metrics.Metric) {
	if known := c.known.Load(); known != nil {
		c.show(*known, func(desc *metrics.Desc, value float64, labels ...string) {
			values <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, labels...)
		})
	}
}
