// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"cmp"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
)

// never is later than all ticks.
const never = math.MaxInt64

// Reading is the clock as one evaluation sees it, or several one after another: it does
// not go on between them. It is not safe for concurrent use. The zero value was not read.
type Reading struct {
	read bool
	// moment is the tick, in seconds since 1970, if the clock was read.
	moment int64
	// until is the earliest moment at which something that was asked about the time may
	// be otherwise.
	until int64
}

// Reader is an input of evaluations that has a clock.
type Reader interface {
	Clock() *Reading
}

// Read returns the value of now(). The time is asked for when it is read for the first time.
func (r *Reading) Read(time func() time.Time) types.Timestamp {
	if !r.read {
		*r = Reading{read: true, moment: momentOf(time()), until: never}
	}
	return types.Timestamp{Time: unix(r.moment)}
}

func unix(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// WasRead tells whether anything of what was evaluated may depend on the time.
func (r *Reading) WasRead() bool { return r.read }

// Step says that what was evaluated may be otherwise at each tick.
func (r *Reading) Step() { r.after(1) }

// After notes a change after so many ticks; none is never.
func (r *Reading) after(ticks int64) {
	if !r.read || ticks <= 0 || ticks > farthestTicks {
		return
	}
	if at := r.moment + ticks*tickSeconds; at <= lastSecond {
		r.until = min(r.until, at)
	}
}

// Period is the time in which an answer holds. It holds forever where there is no Until.
type Period struct {
	// From is the first moment, Until the first one after it at which the answer may be
	// another; zero is never.
	From, Until time.Time
}

// Period is that of what was evaluated, with the tick that was read as its beginning; the
// answer may have been the same before. Both are zero if the clock was not read.
func (r *Reading) Period() Period {
	switch {
	case !r.read:
		return Period{}
	case r.until == never:
		return Period{From: unix(r.moment)}
	default:
		return Period{From: unix(r.moment), Until: unix(r.until)}
	}
}

// Has tells whether an answer holds at a time; one without a Period does always.
func (p *Period) Has(t time.Time) bool {
	return p == nil || !t.Before(p.From) && (p.Until.IsZero() || t.Before(p.Until))
}

// And is the period in which two answers hold.
func (p *Period) And(other *Period) *Period {
	switch {
	case p == nil || other == nil:
		return cmp.Or(p, other)
	case *p == *other:
		return p
	}
	result := *p
	if other.From.After(result.From) {
		result.From = other.From
	}
	if result.Until.IsZero() || !other.Until.IsZero() && other.Until.Before(result.Until) {
		result.Until = other.Until
	}
	return &result
}
