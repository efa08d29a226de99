// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

// Kind is a way in which a request fails.
type Kind string

// The faults that a request can meet. One meets at most one of them.
const (
	// Conflict answers a write with 409, in place of the API server.
	Conflict Kind = "conflict"
	// Throttled answers 429 with Retry-After.
	Throttled Kind = "throttled"
	// Failed answers 500, 502, 503 or 504.
	Failed Kind = "failed"
	// Delayed waits up to a second before the request goes on.
	Delayed Kind = "delayed"
	// RequestLost ends the connection, and the API server has seen nothing.
	RequestLost Kind = "request lost"
	// AnswerLost ends the connection after the API server has answered.
	AnswerLost Kind = "answer lost"
	// WatchEnded ends a watch after up to ten seconds.
	WatchEnded Kind = "watch ended"
	// WatchHeld keeps back what a watch tells, for up to three seconds.
	WatchHeld Kind = "watch held"
	// WatchSkipped loses what a watch tells for up to three seconds. Then it ends, and the
	// next watch of the same is too old.
	WatchSkipped Kind = "watch skipped"
	// WatchTooOld answers a watch with 410.
	WatchTooOld Kind = "watch too old"
	// Partitioned is what happens to all requests while nothing gets through.
	Partitioned Kind = "partitioned"
)

// Mix is how many of a thousand requests meet a fault. Those of writes are for writes, those
// of watches for watches, the others for all requests but watches.
type Mix map[Kind]int

// Kinds in the order in which a mix is drawn from.
var (
	ofWrites  = []Kind{Conflict, AnswerLost}
	ofAll     = []Kind{Throttled, Failed, Delayed, RequestLost}
	ofWatches = []Kind{WatchEnded, WatchHeld, WatchSkipped, WatchTooOld}
)

// None lets everything through.
var None = Mix{}

// Usual is some of everything, Storm so much of it that most of what takes several requests
// fails at first.
var (
	Usual = Mix{
		Conflict: 20, AnswerLost: 20, Throttled: 10, Failed: 10, Delayed: 30, RequestLost: 10,
		WatchEnded: 200, WatchHeld: 200, WatchSkipped: 100, WatchTooOld: 50,
	}
	Storm = Mix{
		Conflict: 200, AnswerLost: 100, Throttled: 100, Failed: 50, Delayed: 100, RequestLost: 50,
		WatchEnded: 400, WatchHeld: 300, WatchSkipped: 100, WatchTooOld: 100,
	}
)

// draw is the kind that a number from 0 to 999 stands for, empty for none.
func (m Mix) draw(number int, kinds ...Kind) Kind {
	for _, kind := range kinds {
		if number -= m[kind]; number < 0 {
			return kind
		}
	}
	return ""
}
