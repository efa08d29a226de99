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

// lease is the lease for one attempt to get it. It knows until when its holder may judge, which client-go's
// election tells with a delay.
type lease struct {
	resourcelock.Interface
	now func() time.Time
	// valid is how long after a renewal was asked for its holder may judge, and grace after which time a lease that
	// was given away is like one that was not.
	valid, grace time.Duration

	mu      sync.Mutex
	renewed time.Time
	held    bool
	former  *resourcelock.LeaderElectionRecord
	handed  bool
	given   bool
}

// errKept is why a lease is not given away: the next one would not wait.
var errKept = errors.New("the guard does not know yet what became of all that it admitted, and keeps its lease until it expires")

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

// renew takes that the lease was got, or renewed, by asking at some time. former is what it was before.
func (l *lease) renew(asked time.Time, former *resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.held = true
		l.handed = former != nil && former.HolderIdentity == "" && asked.Sub(former.RenewTime.Time) < l.grace
	}
	l.renewed = asked
}

// wasHandedOver tells whether the former holder gave the lease away, lately.
func (l *lease) wasHandedOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handed
}

// isValid tells whether its holder may judge. A clock that does not run while the machine sleeps, and one that
// can be set, both have to say so.
func (l *lease) isValid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.held && !l.given && now.Sub(l.renewed) < l.valid && now.Round(0).Sub(l.renewed.Round(0)) < l.valid
}

// giveAway lets the election give the lease away. It is not valid any more.
func (l *lease) giveAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = true
}
