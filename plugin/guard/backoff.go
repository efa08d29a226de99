// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxBackOffs is the maximum number of stored back-offs.
const maxBackOffs = 8192

// backOffs maps the UIDs of claims to their back-offs. A claim has a back-off if its last attempt exceeded a budget or its
// time.
type backOffs struct {
	entries map[types.UID]backOff
}

type backOff struct {
	// failures counts consecutive attempts that exceeded a budget or their time.
	failures int
	// until is the end of the back-off.
	until time.Time
	// last is the error message of the last attempt.
	last string
}

// message returns the reason for refusing a pod. It has the end of the back-off instead of the remaining time, because the
// remaining time would change the message with each refusal.
func (b backOff) message() string {
	return fmt.Sprintf("scheduling attempts took too much time %d times in a row: the next attempt is at %s; the last error was: %s",
		b.failures, b.until.UTC().Round(time.Second).Format(time.RFC3339), b.last)
}

// fail records one more failed attempt of these claims, which starts a longer back-off for each claim.
func (b *backOffs) fail(keys []types.UID, message string, now time.Time, limits *Limits) {
	for _, key := range keys {
		entry := b.entries[key]
		entry.failures++
		entry.until = now.Add(limits.backOff(entry.failures))
		entry.last = message
		b.set(key, entry, now, limits)
	}
}

// set stores the back-off of a claim. If maxBackOffs is reached, it first removes other back-offs.
func (b *backOffs) set(key types.UID, entry backOff, now time.Time, limits *Limits) {
	if b.entries == nil {
		b.entries = map[types.UID]backOff{}
	}
	if _, known := b.entries[key]; !known && len(b.entries) >= maxBackOffs {
		b.evict(now, limits)
	}
	b.entries[key] = entry
}

// of returns the back-off that ends last among the back-offs of these claims. waits is false if no claim has a current
// back-off.
func (b *backOffs) of(keys []types.UID, now time.Time) (longest backOff, waits bool) {
	for _, key := range keys {
		if entry, known := b.entries[key]; known && entry.until.After(now) && entry.until.After(longest.until) {
			longest, waits = entry, true
		}
	}
	return longest, waits
}

// forget removes the back-offs of claims whose attempt stayed within its limits.
func (b *backOffs) forget(keys []types.UID) {
	for _, key := range keys {
		delete(b.entries, key)
	}
}

// evict removes back-offs that ended long ago, mostly of deleted claims. If the list is still full, evict removes the back-off
// that ends first.
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
