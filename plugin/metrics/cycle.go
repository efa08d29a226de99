// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"k8s.io/component-base/metrics"
)

const cycleName = subsystem + "_scheduling_cycle_age_seconds"

// newCycle shows how long nothing was heard of the scheduling cycle, in a program with a watchdog.
func newCycle() *collector[func() time.Duration] {
	desc := newDesc(cycleName, "Time since the scheduling cycle that is running, of any profile, last made progress. It is 0 if none is running.")
	return &collector[func() time.Duration]{descs: []*metrics.Desc{desc}, show: func(age func() time.Duration, value func(*metrics.Desc, float64, ...string)) {
		value(desc, age().Seconds())
	}}
}

// WatchCycle says who knows for how long nothing was heard of the scheduling cycle.
func (m *Metrics) WatchCycle(age func() time.Duration) { m.cycle.know(age) }
