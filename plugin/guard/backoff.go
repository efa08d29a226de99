// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxBackOffs bounds the claims that are known to have failed.
const maxBackOffs = 8192

// backOffs has the claims whose last attempt used up a budget or its time.
type backOffs struct {
	entries map[types.UID]backOff
}

type backOff struct {
	// failures is the number of such attempts in a row.
	failures int
	// until is when the claim may be tried again.
	until time.Time
	// last is what the last of them said.
	last string
}

// message has the time as it is on the clock and not what is left of it, so that it does not
// change each time that the pod is refused.
func (b backOff) message() string {
	return fmt.Sprintf("taking too much of the scheduler's time, %d times in a row: tried again at %s; the last time: %s",
		b.failures, b.until.UTC().Round(time.Second).Format(time.RFC3339), b.last)
}

// fail notes one attempt more.
func (b *backOffs) fail(keys []types.UID, message string, now time.Time, limits *Limits) {
	for _, key := range keys {
		entry := b.entries[key]
		entry.failures++
		entry.until = now.Add(limits.backOff(entry.failures))
		entry.last = message
		b.set(key, entry, now, limits)
	}
}

// set makes room first if that is needed.
func (b *backOffs) set(key types.UID, entry backOff, now time.Time, limits *Limits) {
	if b.entries == nil {
		b.entries = map[types.UID]backOff{}
	}
	if _, known := b.entries[key]; !known && len(b.entries) >= maxBackOffs {
		b.makeRoom(now, limits)
	}
	b.entries[key] = entry
}

// of returns the one of the claims that has to be waited for longest.
func (b *backOffs) of(keys []types.UID, now time.Time) (longest backOff, waits bool) {
	for _, key := range keys {
		if entry, known := b.entries[key]; known && entry.until.After(now) && entry.until.After(longest.until) {
			longest, waits = entry, true
		}
	}
	return longest, waits
}

// forget is for claims that got their devices.
func (b *backOffs) forget(keys []types.UID) {
	for _, key := range keys {
		delete(b.entries, key)
	}
}

// makeRoom drops those that were not tried for a long time, which are deleted for the most
// part, or else those that would be tried next.
func (b *backOffs) makeRoom(now time.Time, limits *Limits) {
	var next types.UID
	var soonest time.Time
	for key, entry := range b.entries {
		if entry.until.Add(limits.BackOffMax).Before(now) {
			delete(b.entries, key)
			continue
		}
		if next == "" || entry.until.Before(soonest) {
			next, soonest = key, entry.until
		}
	}
	if len(b.entries) >= maxBackOffs {
		delete(b.entries, next)
	}
}
