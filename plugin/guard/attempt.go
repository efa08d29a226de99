// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// OvertimeError is the error after an attempt ended because its time was over and pods of other namespaces waited.
type OvertimeError struct {
	// Timeout is the time limit of the attempt.
	Timeout time.Duration
}

// Error returns a message in the style of the scheduler's messages about nodes.
func (e *OvertimeError) Error() string {
	return fmt.Sprintf("not checked, because the attempt to schedule the pod took longer than %v while other pods wait: "+
		"to allow more time, raise attemptTimeout in the scheduler plugin's DynamicResourcesCELArgs", e.Timeout)
}

// Is reports whether target is [context.DeadlineExceeded]. Callers treat an attempt that is over like a timeout.
func (e *OvertimeError) Is(target error) bool { return target == context.DeadlineExceeded }

// Attempt is one attempt to schedule one pod. Its methods are safe for concurrent use. On a nil Attempt they do nothing.
type Attempt struct {
	guard     *Guard
	namespace string
	keys      []types.UID
	timeout   time.Duration
	began     time.Time
	// reached is the time from the start to the last call of Progress, in nanoseconds.
	reached atomic.Int64
	over    atomic.Pointer[OvertimeError]
	failed  atomic.Bool
	// mutex guards onOver.
	mutex  sync.Mutex
	onOver []func(error)
}

// Progress records that the attempt is still running. The filters call it for each node, so it takes no lock.
func (a *Attempt) Progress() {
	if a == nil {
		return
	}
	now := int64(a.guard.clock.Since(a.began))
	for {
		reached := a.reached.Load()
		if now <= reached || a.reached.CompareAndSwap(reached, now) {
			return
		}
	}
}

// Over returns an [*OvertimeError] if the attempt's time is over, otherwise nil.
func (a *Attempt) Over() error {
	if a == nil {
		return nil
	}
	if err := a.over.Load(); err != nil {
		return err
	}
	return nil
}

// OnOver registers f, which is called when the attempt's time is over. If it is over already, OnOver calls f at once.
func (a *Attempt) OnOver(f func(error)) {
	if a == nil {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.over.Load(); err != nil {
		f(err)
		return
	}
	a.onOver = append(a.onOver, f)
}

// end ends the attempt because its time is over.
func (a *Attempt) end() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	err := &OvertimeError{a.timeout}
	if !a.over.CompareAndSwap(nil, err) {
		return
	}
	for _, f := range a.onOver {
		f(err)
	}
}

// Remaining returns the remaining time of the attempt, at most limit.
func (a *Attempt) Remaining(limit time.Duration) time.Duration {
	if a == nil || a.timeout == 0 {
		return limit
	}
	return min(limit, a.timeout-a.guard.clock.Since(a.began))
}

// Failed records that the attempt exceeded a budget or its time. The attempt's claims then wait for a back-off.
func (a *Attempt) Failed(err error) {
	if a == nil || !a.failed.CompareAndSwap(false, true) {
		return
	}
	g := a.guard
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.backOffs.fail(a.keys, err.Error(), g.clock.Now(), &g.limits)
}

// Succeeded records that the attempt's claims can get devices, and ends their back-off.
func (a *Attempt) Succeeded() {
	if a == nil {
		return
	}
	g := a.guard
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.backOffs.forget(a.keys)
}
