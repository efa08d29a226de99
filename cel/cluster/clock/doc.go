// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clock is now() in expressions over clusters: what time it is, and until when
// an answer that depends on it stays the same.
//
//	followed := clock.Follow(checked)           // once, when the expression is compiled
//	reading.Read(time.Now)                      // while it is evaluated: the variable @now
//	period := reading.Period()                  // afterwards
//
// # A clock that ticks
//
// now() is the time rounded down to a multiple of [Tick], ten seconds. So an answer is a
// function of the tick, and not of the moment in which somebody asked. All clusters that
// are looked at within one tick see the same time, answers can be remembered at least
// until the next one, and no expression, whoever wrote it, gives reason to look again
// more often than that.
//
// # When an answer changes
//
// While time passes, now() grows by a second each second, now() + duration("1h") does as
// well, and timestamp("…") - now() shrinks: what an expression makes of the time by
// adding and subtracting moves evenly, at a rate that the expression says. [Follow] finds
// the rates of all parts of an expression. What asks about such a value, a comparison
// or getHours(), has another result at a moment that can be computed from the value:
//
//	now() > timestamp(x)                      at the tick after x, or never again
//	now() - timestamp(x) >= duration("24h")   24 hours after x
//	now().getDayOfWeek("Europe/Berlin")       at midnight there, or when its offset changes
//
// The evaluation itself is that of CEL, with its values: following it can't make it
// answer otherwise. It is told of the calls that ask ([meter.Watch]), and up to the
// earliest moment at which one of them has another result all of them have the same. So
// the expression goes the same way through its conditions, reads the same, and has the
// same answer, the same cost or the same failure. A moment may be too early, where it is
// not worth the trouble to compute it: then the answer is found to be the same again. It
// is never too late.
//
// # What is not followed
//
// Everything else that takes such a value, such as string(now()), int(now()) or a list
// with it in it that is sorted. An expression with a part of that kind has an answer that
// holds until the next tick, if now() was read at all. Nor is it told that an answer
// changes in more than [Farthest].
package clock
