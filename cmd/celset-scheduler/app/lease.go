// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the lock of leader election. Its method check fails as soon as another scheduler may have the lease. The elector
// alone would notice a lost lease too late: it claims to be healthy until its renew deadline, even if another scheduler is the
// leader.
type lease struct {
	resourcelock.Interface
	// duration is the time after a renewal during which no other scheduler may take the lease.
	duration time.Duration
	// acquired is called each time the lease is acquired. It may be nil.
	acquired func()
	// until is the earliest time when other schedulers may take the lease. It is nil if the lease is not held.
	until atomic.Pointer[time.Time]
}

var errNotHeld = errors.New("the lease is not held, or was not renewed in time")

// check returns an error if another scheduler may hold the lease. It uses the monotonic clock.
func (l *lease) check() error {
	if until := l.until.Load(); until == nil || time.Until(*until) <= 0 {
		return errNotHeld
	}
	return nil
}

// Get implements [resourcelock.Interface].
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.until.Store(nil)
	}
	return record, raw, err
}

// Create implements [resourcelock.Interface].
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements [resourcelock.Interface].
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write creates or updates the lease and sets l.until. The duration counts from before the request. Other schedulers count it
// from the later time when they see the new record, so l.until is never too late. A failed write does not change l.until.
func (l *lease) write(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	until := time.Now().Add(l.duration)
	err := write(ctx, record)
	if err == nil && record.HolderIdentity == l.Identity() {
		if l.until.Swap(&until) == nil && l.acquired != nil {
			go l.acquired()
		}
	} else if err == nil {
		l.until.Store(nil)
	}
	return err
}
