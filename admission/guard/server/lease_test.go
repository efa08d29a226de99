// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a lease that is stored in memory.
type lock struct {
	resourcelock.Interface
	record *resourcelock.LeaderElectionRecord
	err    error
	// takes is called for each request. It simulates the duration of the request.
	takes func()
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return l.record, nil, l.err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.takes()
	if l.err == nil {
		l.record = &record
	}
	return l.err
}

// newLease returns a lease whose renewals take one second.
func newLease() (l *lease, stored *lock, now *time.Time) {
	now = &time.Time{}
	*now = time.Unix(1000, 0)
	stored = &lock{takes: func() { *now = now.Add(time.Second) }}
	return &lease{Interface: stored, now: func() time.Time { return *now }, valid: 10 * time.Second, grace: time.Minute}, stored, now
}

var me = resourcelock.LeaderElectionRecord{HolderIdentity: "me"}

// TestLeaseIsValidFromTheQuestion tests that the validity counts from sending the renewal, not from receiving the answer.
func TestLeaseIsValidFromTheQuestion(t *testing.T) {
	l, stored, now := newLease()
	require.False(t, l.isValid())
	require.NoError(t, l.Create(t.Context(), me))
	*now = now.Add(9*time.Second - 1)
	require.True(t, l.isValid())
	*now = now.Add(1)
	require.False(t, l.isValid())

	require.NoError(t, l.Update(t.Context(), me))
	require.True(t, l.isValid())
	stored.err = errors.New("no connection")
	*now = now.Add(8 * time.Second)
	require.Error(t, l.Update(t.Context(), me))
	require.False(t, l.isValid(), "what was not answered is no renewal")
	require.Error(t, l.Create(t.Context(), me))
	require.False(t, l.isValid())
}

// TestLeaseEndsByEitherClock tests a lease on a machine that slept: the monotonic clock stopped, but the wall clock did not.
func TestLeaseEndsByEitherClock(t *testing.T) {
	began := time.Now() // with both clocks
	now := began
	l := &lease{Interface: &lock{takes: func() {}}, now: func() time.Time { return now }, valid: time.Minute}
	require.NoError(t, l.Create(t.Context(), me))
	require.True(t, l.isValid())
	now = began.Round(0).Add(2 * time.Minute)
	require.False(t, l.isValid())
}

func TestLeaseIsGivenAwayOnPurposeOnly(t *testing.T) {
	l, stored, _ := newLease()
	require.NoError(t, l.Create(t.Context(), me))
	require.ErrorIs(t, l.Update(t.Context(), resourcelock.LeaderElectionRecord{}), errKept)
	require.Equal(t, "me", stored.record.HolderIdentity)
	l.giveAway()
	require.False(t, l.isValid())
	require.NoError(t, l.Update(t.Context(), resourcelock.LeaderElectionRecord{}))
	require.Empty(t, stored.record.HolderIdentity)
}

// TestHandover tests that the next leader skips the wait only if its predecessor released the lease recently.
func TestHandover(t *testing.T) {
	for name, test := range map[string]struct {
		former *resourcelock.LeaderElectionRecord
		want   bool
	}{
		"given away":          {&resourcelock.LeaderElectionRecord{RenewTime: metav1.NewTime(time.Unix(990, 0))}, true},
		"given away long ago": {&resourcelock.LeaderElectionRecord{RenewTime: metav1.NewTime(time.Unix(900, 0))}, false},
		"expired":             {&resourcelock.LeaderElectionRecord{HolderIdentity: "other", RenewTime: metav1.NewTime(time.Unix(990, 0))}, false},
		"own from before":     {&resourcelock.LeaderElectionRecord{HolderIdentity: "me", RenewTime: metav1.NewTime(time.Unix(990, 0))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, stored, _ := newLease()
			stored.record = test.former
			_, _, err := l.Get(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Update(t.Context(), me))
			require.Equal(t, test.want, l.wasHandedOver())
			_, _, err = l.Get(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Update(t.Context(), me))
			require.Equal(t, test.want, l.wasHandedOver(), "a renewal is none")
		})
	}
	l, _, _ := newLease()
	require.NoError(t, l.Create(t.Context(), me))
	require.False(t, l.wasHandedOver(), "nobody knows what was before")
}
