// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the lock of one election. It also computes how long its holder may judge, because client-go reports the loss of a
// lease late.
type lease struct {
	resourcelock.Interface
	now func() time.Time
	// valid is how long the holder may judge after it sent a renewal. handed is set if the former holder released the lease at
	// most grace ago.
	valid, grace time.Duration

	mu sync.Mutex
	// renewed is the time when the last renewal was sent. held means that the lease was acquired. former is the record that was
	// read last. handed means that the former holder released the lease less than grace ago. given means that [lease.giveAway]
	// was called.
	renewed time.Time
	held    bool
	former  *resourcelock.LeaderElectionRecord
	handed  bool
	given   bool
}

// errKept is the error of releasing a lease while admitted writes are unsettled. The next leader would not wait for these
// writes.
var errKept = errors.New("some admitted allocations are not stored yet, so the guard keeps its lease until the lease expires")

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.former = record
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := l.now()
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.renew(asked, nil)
	}
	return err
}

// Update implements resourcelock.Interface.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	keep, former := record.HolderIdentity == "" && !l.given, l.former
	l.mu.Unlock()
	if keep {
		return errKept
	}
	asked := l.now()
	err := l.Interface.Update(ctx, record)
	if err == nil && record.HolderIdentity != "" {
		l.renew(asked, former)
	}
	return err
}

// renew records that a request sent at the time asked acquired or renewed the lease. former is the record before the request.
func (l *lease) renew(asked time.Time, former *resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.held = true
		l.handed = former != nil && former.HolderIdentity == "" && asked.Sub(former.RenewTime.Time) < l.grace
	}
	l.renewed = asked
}

// wasHandedOver reports whether the former holder released the lease less than grace before this replica acquired it.
func (l *lease) wasHandedOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handed
}

// isValid reports whether the holder may judge. It checks both clocks: the monotonic clock stops while the machine sleeps, and
// the wall clock can be set.
func (l *lease) isValid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.held && !l.given && now.Sub(l.renewed) < l.valid && now.Round(0).Sub(l.renewed.Round(0)) < l.valid
}

// giveAway allows the election to release the lease. After this call, isValid returns false.
func (l *lease) giveAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = true
}
