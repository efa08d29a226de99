// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/plugin/metrics"
)

// What "kubectl celset fragmentation" says is shown as metrics, too. It is counted beside scheduling,
// and never in a scheduling cycle: no pod waits for it. Of a core it takes at most a hundredth in the
// long run, whatever there is in the cluster, and one core while it lasts.

const (
	// firstFragmentation is how long a process that begins to schedule does nothing else, at most:
	// the pods that came meanwhile are tried first.
	firstFragmentation = time.Minute
	// fragmentationTimeout is how long it may take. In 1,000 nodes it took little more than a second.
	fragmentationTimeout = 30 * time.Second
	// fragmentationRest is how much longer nothing is counted than it took to count.
	fragmentationRest = 100
)

// fragmentationMonitor counts the sets of devices that fit.
type fragmentationMonitor struct {
	clock   clock.Clock
	metrics *metrics.Metrics
	// interval is asked for when the process schedules. 0 is for never.
	interval func() time.Duration
	// read reads what there is in the cluster, count counts in it.
	read  func(context.Context) (*fragmentationState, error)
	count func(context.Context, *fragmentationState) (*fragmentation.Report, error)
	// last is what was counted last, shown what is shown of it. nil if that is nothing.
	last  *fragmentationState
	shown *metrics.Fragmentation
}

// run counts from when the process schedules until the context ends.
func (m *fragmentationMonitor) run(ctx context.Context, begun <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-begun:
	}
	interval := m.interval()
	if interval == 0 {
		return
	}
	for wait := min(interval, firstFragmentation); m.sleep(ctx, wait); {
		began := m.clock.Now()
		m.look(ctx)
		wait = max(interval, fragmentationRest*m.clock.Since(began))
	}
	m.show(nil)
}

// sleep is false if the context ended before.
func (m *fragmentationMonitor) sleep(ctx context.Context, wait time.Duration) bool {
	timer := m.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return ctx.Err() == nil
	}
}

// look counts and shows what it found. After an error nothing is shown: what was true before may be
// true no more.
func (m *fragmentationMonitor) look(ctx context.Context) {
	began := m.clock.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, fragmentationTimeout, fmt.Errorf("it took longer than %s", fragmentationTimeout))
	defer cancel()
	state, err := m.read(ctx)
	if err == nil && m.shown != nil && state.equal(m.last) {
		unchanged := *m.shown
		unchanged.At = began
		m.show(&unchanged)
		m.metrics.ObserveCount(metrics.CountUnchanged)
		return
	}
	var report *fragmentation.Report
	if err == nil {
		report, err = m.guarded(ctx, state)
	}
	if err != nil {
		m.last = nil
		m.show(nil)
		if errors.Is(ctx.Err(), context.Canceled) {
			return
		}
		m.metrics.ObserveCount(metrics.CountFailed)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		klog.FromContext(ctx).Error(err, "The sets of devices that fit could not be counted, and are not among the metrics")
		return
	}
	m.last = state
	m.show(&metrics.Fragmentation{Report: report, At: began, Took: m.clock.Since(began)})
	m.metrics.ObserveCount(outcomeOf(report))
}

func (m *fragmentationMonitor) show(found *metrics.Fragmentation) {
	m.shown = found
	m.metrics.ShowFragmentation(found)
}

// guarded counts, and returns a panic as an error: whatever goes wrong with numbers for people, the
// scheduler goes on.
func (m *fragmentationMonitor) guarded(ctx context.Context, state *fragmentationState) (report *fragmentation.Report, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v, in %s", panicked, debug.Stack())
		}
	}()
	return m.count(ctx, state)
}

func outcomeOf(report *fragmentation.Report) metrics.CountOutcome {
	if report.NotPacked != "" || slices.ContainsFunc(report.Shapes, func(s fragmentation.Shape) bool { return s.Error != "" }) {
		return metrics.CountPartial
	}
	return metrics.CountComplete
}
