// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/component-base/metrics/testutil"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/ledger"
)

// sample is the state of the scheduler's process at one time.
type sample struct {
	goroutines int
	heap       float64 // MiB, after a garbage collection
}

// takeSample has the scheduler collect garbage, and reads its metrics.
func takeSample(ctx context.Context, scheduler *controlplane.Process) (sample, error) {
	if _, err := scheduler.Get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return sample{}, err
	}
	content, err := scheduler.Get(ctx, "/metrics")
	if err != nil {
		return sample{}, err
	}
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return sample{}, err
	}
	gauge := func(name string) float64 {
		values := families[name].GetMetric()
		if len(values) == 0 {
			return 0
		}
		return values[0].GetGauge().GetValue()
	}
	return sample{
		goroutines: int(gauge("go_goroutines")),
		heap:       gauge("go_memstats_heap_alloc_bytes") / (1 << 20),
	}, nil
}

// percentile of durations in ascending order; 0 if there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// protocol is what is seen during a run, a line at a time.
type protocol struct {
	to    io.Writer
	start time.Time
}

func (p *protocol) printf(format string, args ...any) {
	fmt.Fprintf(p.to, "%8s  "+format+"\n", append([]any{time.Since(p.start).Round(time.Second)}, args...)...)
}

func (p *protocol) sample(s sample, e ledger.Entries, c *churn) {
	made, bound, waiting := c.counts()
	p.printf("pods: %d made, %d bound, %d waiting; devices in use: %d; allocations: %d; violations: %d; scheduler: %d goroutines, %.0f MiB heap",
		made, bound, waiting, e.InUse, e.Allocations, len(e.Violations), s.goroutines, s.heap)
}

func (p *protocol) latencies(window time.Duration, sorted []time.Duration) {
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	p.printf("%d pods in the last %v, from creation to node: p50 %v, p95 %v, p99 %v", len(sorted), window.Round(time.Second),
		round(percentile(sorted, 50)), round(percentile(sorted, 95)), round(percentile(sorted, 99)))
}
