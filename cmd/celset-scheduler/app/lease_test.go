// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a lease without an API server.
type lock struct {
	mutex  sync.Mutex
	holder string
	took   time.Duration
	err    error
}

func (l *lock) set(holder string, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.holder, l.err = holder, err
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder, LeaseDurationSeconds: 15}, []byte(l.holder), nil
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.took)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.err == nil {
		l.holder = record.HolderIdentity
	}
	return l.err
}

func (l *lock) RecordEvent(string) {}

func (l *lock) Identity() string { return "us" }

func (l *lock) Describe() string { return "lock" }

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &lock{}
		held := &lease{Interface: under, duration: 15 * time.Second}
		write := func(holder string) {
			_ = held.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder})
		}
		require.ErrorIs(t, held.check(), errNotHeld, "it was never held")
		require.NoError(t, held.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "us"}))
		require.NoError(t, held.check())
		time.Sleep(10 * time.Second)
		under.took = 4 * time.Second
		write("us")
		time.Sleep(10 * time.Second)
		require.NoError(t, held.check(), "it was renewed")
		under.took, under.err = 0, errors.New("conflict")
		write("us")
		require.NoError(t, held.check(), "others still leave it alone")
		time.Sleep(time.Second)
		require.ErrorIs(t, held.check(), errNotHeld, "it counts from before the request")
		under.err = nil
		write("us")
		require.NoError(t, held.check())
		under.set("another", nil)
		_, _, err := held.Get(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, held.check(), errNotHeld, "another one has it")
		write("us")
		write("")
		require.ErrorIs(t, held.check(), errNotHeld, "it was released")
	})
}

// TestStoppedLeader: a leader goes on after another one has taken its lease. The elector finds nothing wrong, and ends
// after its renew deadline.
func TestStoppedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := &lock{}
		held := &lease{Interface: under, duration: 15 * time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leading := make(chan struct{})
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: held, LeaseDuration: held.duration, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(leading) }, OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		ended := make(chan struct{})
		go func() {
			elector.Run(ctx)
			close(ended)
		}()
		<-leading
		time.Sleep(time.Minute)
		require.NoError(t, held.check())
		under.set("another", errors.New("conflict"))
		time.Sleep(4 * time.Second)
		require.NoError(t, elector.Check(0), "what the elector says")
		require.ErrorIs(t, held.check(), errNotHeld)
		select {
		case <-ended:
			t.Error("the elector has ended")
		default:
		}
		<-ended
	})
}
