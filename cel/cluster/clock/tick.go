// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

const (
	// Tick is how far apart two times are that now() may be.
	Tick = 10 * time.Second
	// Farthest is how far in the future a change is that is told. The difference of two
	// times of 292 years is none any more, but no answer is remembered as long.
	Farthest = 100 * 365 * 24 * time.Hour

	tickSeconds   = int64(Tick / time.Second)
	farthestTicks = int64(Farthest / Tick)

	// The first and the last second of CEL's timestamps, the years 1 to 9999.
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// Moment is the tick at or before a time, in UTC. Times that CEL does not have are the first
// one, or the last one.
func Moment(t time.Time) time.Time { return time.Unix(momentOf(t), 0).UTC() }

func momentOf(t time.Time) int64 {
	seconds := min(max(t.Unix(), firstSecond), lastSecond)
	return seconds - floorMod(seconds, tickSeconds)
}

// floorMod is what is left of a after the multiple of b at or below it.
func floorMod(a, b int64) int64 { return (a%b + b) % b }

// ceilDiv divides what is not negative by what is positive.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
