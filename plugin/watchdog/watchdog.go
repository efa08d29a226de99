// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// DefaultTimeout is how long a cycle may make no progress. What is known to take long
	// is bounded to much less: this is for the rest.
	DefaultTimeout = 30 * time.Second

	// lookInterval is how often Run looks.
	lookInterval = time.Second
)

// Watchdog watches one scheduler. It is safe for concurrent use.
type Watchdog struct {
	clock   clock.PassiveClock
	timeout time.Duration
	// onStuck is called once for each cycle that is over time.
	onStuck func()

	// mutex guards what follows.
	mutex sync.Mutex
	// cycle counts the cycles, and pods that are begun in them.
	cycle int64
	// pod is what is being tried, nil between cycles.
	pod   *v1.Pod
	since time.Time
	// stuck is the last cycle that was over time.
	stuck int64
}

// New returns a Watchdog whose Check fails when nothing was heard of a cycle for so long.
func New(clock clock.PassiveClock, timeout time.Duration, onStuck func()) *Watchdog {
	return &Watchdog{clock: clock, timeout: timeout, onStuck: onStuck}
}

// Began tells that the scheduler begins with a pod: a cycle, or, for groups of pods, the next
// pod in it.
func (w *Watchdog) Began(pod *v1.Pod) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.cycle++
	w.pod, w.since = pod, w.clock.Now()
}

// Ended tells that it is done with it.
func (w *Watchdog) Ended() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.pod = nil
}

// Age is for how long nothing was heard of the cycle, 0 if there is none.
func (w *Watchdog) Age() time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.age()
}

func (w *Watchdog) age() time.Duration {
	if w.pod == nil {
		return 0
	}
	return w.clock.Since(w.since)
}

// Check returns an error if a cycle makes no progress. It does not name the pod: health
// checks are for everybody.
func (w *Watchdog) Check() error {
	if age := w.Age(); age >= w.timeout {
		return fmt.Errorf("a scheduling cycle has made no progress for %v, the limit is %v", age.Round(time.Second), w.timeout)
	}
	return nil
}

// Run reports cycles that are over time until ctx ends.
func (w *Watchdog) Run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.look(klog.FromContext(ctx))
		}
	}
}

// look is one round of Run.
func (w *Watchdog) look(logger klog.Logger) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.age() < w.timeout || w.stuck == w.cycle {
		return
	}
	w.stuck = w.cycle
	logger.Error(nil, "A scheduling cycle makes no progress, /livez fails", "pod", klog.KObj(w.pod), "since", w.since)
	w.onStuck()
}
