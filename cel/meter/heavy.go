// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import "context"

// A scheduler evaluates on sixteen nodes at a time, and each evaluation may make some MiB.
// Few make any: so those that make much take turns, and what all of them have is bounded by
// what two may have.

const (
	// lightBytes is what an evaluation may make without waiting for its turn.
	lightBytes = 256 << 10
	// heavyAtOnce is how many evaluations may make more at the same time, in one process.
	heavyAtOnce = 2
)

var turns = make(chan struct{}, heavyAtOnce)

// wait waits for a turn. An evaluation never waits for another one while it has one.
func wait(ctx context.Context) bool {
	if ctx == nil {
		return false
	}
	select {
	case turns <- struct{}{}:
		return true
	case <-ctx.Done():
		panic(&InterruptedError{Err: ctx.Err()})
	}
}

func endTurn() { <-turns }
