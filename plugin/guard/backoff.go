// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxBackOffs limits the number of stored back-offs.
const maxBackOffs = 8192

// backOffs maps claims to their back-offs. A claim backs off if its last attempt used up a budget or its time.
type backOffs struct {
	entries map[types.UID]backOff
}

type backOff struct {
	// failures counts consecutive attempts that used up a budget or their time.
	failures int
	// until is the time of the next attempt.
	until time.Time
	// last is the message of the last attempt.
	last string
}

// message returns a message with the time of the next attempt. A remaining time would change the message with each refusal.
func (b backOff) message() string {
	return fmt.Sprintf("scheduling attempts took too much time %d times in a row: the next attempt is at %s; the last error was: %s",
		b.failures, b.until.UTC().Round(time.Second).Format(time.RFC3339), b.last)
}

// fail records one more failed attempt.
func (b *backOffs) fail(keys []types.UID, message string, now time.Time, limits *Limits) {
	for _, key := range keys {
		entry := b.entries[key]
		entry.failures++
		entry.until = now.Add(limits.backOff(entry.failures))
		entry.last = message
		b.set(key, entry, now, limits)
	}
}

// set stores a back-off. If the limit is reached, it first removes others.
func (b *backOffs) set(key types.UID, entry backOff, now time.Time, limits *Limits) {
	if b.entries == nil {
		b.entries = map[types.UID]backOff{}
	}
	if _, known := b.entries[key]; !known && len(b.entries) >= maxBackOffs {
		b.evict(now, limits)
	}
	b.entries[key] = entry
}

// of returns the claims' back-off with the latest end.
func (b *backOffs) of(keys []types.UID, now time.Time) (longest backOff, waits bool) {
	for _, key := range keys {
		if entry, known := b.entries[key]; known && entry.until.After(now) && entry.until.After(longest.until) {
			longest, waits = entry, true
		}
	}
	return longest, waits
}

// forget removes the back-offs of claims that got devices.
func (b *backOffs) forget(keys []types.UID) {
	for _, key := range keys {
		delete(b.entries, key)
	}
}

// evict removes back-offs that ended long ago, mostly of deleted claims. Otherwise it removes the back-off that ends next.
func (b *backOffs) evict(now time.Time, limits *Limits) {
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
