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

	// recordAfter is when an attempt is written down. To write down each of them would be
	// a request to the API server for each pod.
	recordAfter = 500 * time.Millisecond

	// lookInterval is how often it is looked for such attempts.
	lookInterval = 100 * time.Millisecond

	// writeTimeout bounds each request to the API server.
	writeTimeout = 5 * time.Second
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

// long returns the pod that is being tried if that takes long. cycle tells it from others.
func (w *Watchdog) long() (pod *v1.Pod, since time.Time, cycle int64, becameStuck bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	age := w.age()
	if age < recordAfter {
		return nil, time.Time{}, 0, false
	}
	if becameStuck = age >= w.timeout && w.stuck != w.cycle; becameStuck {
		w.stuck = w.cycle
	}
	return w.pod, w.since, w.cycle, becameStuck
}

// Run writes attempts that take long into the journal until ctx ends.
func (w *Watchdog) Run(ctx context.Context, journal *Journal) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for written := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			written = w.look(ctx, journal, written)
		}
	}
}

// look is one round of Run. written is the cycle that is in the journal, 0 if there is none.
func (w *Watchdog) look(ctx context.Context, journal *Journal, written int64) int64 {
	pod, since, cycle, becameStuck := w.long()
	logger := klog.FromContext(ctx)
	if becameStuck {
		logger.Error(nil, "A scheduling cycle makes no progress, /livez fails", "pod", klog.KObj(pod), "since", since)
		w.onStuck()
	}
	if cycle == written {
		return written
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := journal.write(ctx, pod, since); err != nil {
		// It is tried again at once if the attempt still lasts then.
		logger.V(2).Info("Can't write down which pod is being tried", "err", err)
		return written
	}
	return cycle
}
