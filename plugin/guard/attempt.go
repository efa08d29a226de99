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

// OvertimeError says that an attempt is over because pods of other namespaces wait.
type OvertimeError struct {
	// Timeout is what the attempt was allowed to take.
	Timeout time.Duration
}

// Error says it as a scheduler says it of nodes.
func (e *OvertimeError) Error() string {
	return fmt.Sprintf("not looked at, for the attempt to schedule the pod took longer than %v, and others wait: "+
		"raise attemptTimeout in the scheduler plugin's DynamicResourcesCELArgs if it needs more", e.Timeout)
}

// Is makes it one of the errors that say that the time is over.
func (e *OvertimeError) Is(target error) bool { return target == context.DeadlineExceeded }

// Attempt is one attempt to schedule one pod. Its methods are safe for concurrent use, and
// those of nil do nothing.
type Attempt struct {
	guard     *Guard
	namespace string
	keys      []types.UID
	timeout   time.Duration
	began     time.Time
	// reached is how long after the beginning the attempt was last seen, in nanoseconds.
	reached atomic.Int64
	over    atomic.Pointer[OvertimeError]
	failed  atomic.Bool
	// mutex guards what is to be called when the time is over.
	mutex  sync.Mutex
	onOver []func(error)
}

// Progress notes that the attempt is still going on. It takes no lock: it is called for each
// node.
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

// Over returns an [*OvertimeError] if the time is over.
func (a *Attempt) Over() error {
	if a == nil {
		return nil
	}
	if err := a.over.Load(); err != nil {
		return err
	}
	return nil
}

// OnOver has f called when the time is over, at once if it is.
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

// end is called when the time is over.
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

// Remaining is what is left of the time, at most limit.
func (a *Attempt) Remaining(limit time.Duration) time.Duration {
	if a == nil || a.timeout == 0 {
		return limit
	}
	return min(limit, a.timeout-a.guard.clock.Since(a.began))
}

// Failed notes that the attempt used up a budget or its time. The claims back off.
func (a *Attempt) Failed(err error) {
	if a == nil || !a.failed.CompareAndSwap(false, true) {
		return
	}
	g := a.guard
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.backOffs.fail(a.keys, err.Error(), g.clock.Now(), &g.limits)
}

// Succeeded notes that there are devices for the claims.
func (a *Attempt) Succeeded() {
	if a == nil {
		return
	}
	g := a.guard
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.backOffs.forget(a.keys)
}
