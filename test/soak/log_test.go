// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	goroutines, err := gauge(ctx, scheduler, "go_goroutines")
	if err != nil {
		return sample{}, err
	}
	heap, err := gauge(ctx, scheduler, "go_memstats_heap_alloc_bytes")
	return sample{goroutines: int(goroutines), heap: heap / (1 << 20)}, err
}

// gauge is one of the scheduler's metrics, 0 if it has none of that name.
func gauge(ctx context.Context, scheduler *controlplane.Process, name string) (float64, error) {
	content, err := scheduler.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	values := families[name].GetMetric()
	if len(values) == 0 {
		return 0, nil
	}
	return values[0].GetGauge().GetValue(), nil
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

// newProtocol begins one that goes to the test's output, and to a file if one is named.
func newProtocol(t *testing.T, log string) *protocol {
	t.Helper()
	p := &protocol{to: t.Output(), start: time.Now()}
	if log != "" {
		file, err := os.Create(log)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, file.Close()) })
		p.to = io.MultiWriter(p.to, file)
	}
	return p
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
