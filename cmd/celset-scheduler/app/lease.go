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

// lease is the lock of leader election, and says whether it is held. The elector does not say it in time: it goes on
// for its renew deadline after it has found that another one leads, and calls itself healthy meanwhile.
type lease struct {
	resourcelock.Interface
	// duration is for how long others leave it alone after it was renewed.
	duration time.Duration
	// acquired is called each time that the lease is taken, nil if nothing is to be done then.
	acquired func()
	// until is when others may take it, nil if they may.
	until atomic.Pointer[time.Time]
}

var errNotHeld = errors.New("the lease is not held, or was not renewed in time")

// check returns an error if another scheduler may have the lease. The clock is the monotonic one.
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

// write counts from before the request: others count from when they see what it has stored. After one that failed, as
// it does when another one has written, the lease may be held as long as before.
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
