// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// A scheduler evaluates on sixteen nodes at a time, and each evaluation may make some MiB.
// Few make any: so those that make much take turns, and what all of them have is bounded by
// what two may have.

const (
	// lightBytes is what an evaluation may make without waiting for its turn.
	lightBytes = 256 << 10
	// heavyAtOnce is how many evaluations may make more at the same time, in one process.
	heavyAtOnce = 2
)

var heavy = semaphore.NewWeighted(heavyAtOnce)

// wait waits for a turn. An evaluation never waits for another one while it has one.
func wait(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	if err := heavy.Acquire(ctx, 1); err != nil {
		panic(&InterruptedError{Err: err})
	}
	return true
}

func endTurn() { heavy.Release(1) }
