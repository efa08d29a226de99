// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"time"

	"github.com/celset/celset/placement"
)

const (
	// DefaultTurn is how long a Placement may be evaluated before others are, and what
	// is longer expensive.
	DefaultTurn = 250 * time.Millisecond
	// ExpensiveCost is what all expressions of a Placement on all clusters may cost, in
	// CEL cost units, before it is expensive, however fast the machine is.
	ExpensiveCost = 10_000_000
	// firstDelay and lastDelay are how long a Placement waits after its evaluations took
	// too long, the first time and at most.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
)

// Timeouts bound how long Placements may be evaluated. Those that are zero are the
// defaults.
type Timeouts struct {
	// Evaluation is for the expressions of one predicate on one cluster; by default
	// [placement.DefaultEvaluationTimeout].
	Evaluation time.Duration
	// Turn is how long a Placement is evaluated before it is put behind others; by
	// default [DefaultTurn].
	Turn time.Duration
	// Total is for all turns of one decision; by default [placement.DefaultTimeout].
	Total time.Duration
}

func (t Timeouts) orDefaults() Timeouts {
	return Timeouts{
		Evaluation: cmp.Or(t.Evaluation, placement.DefaultEvaluationTimeout),
		Turn:       cmp.Or(t.Turn, DefaultTurn),
		Total:      cmp.Or(t.Total, placement.DefaultTimeout),
	}
}

// pace is how long one generation of a Placement takes.
type pace struct {
	generation int64
	// slow is whether it is expensive, and belongs to the slow queue. A new one does not.
	slow bool
	// spent is how long it was evaluated since the last outcome, last how long that took.
	spent, last time.Duration
	// overruns is how often in a row that took too long; until then it waits.
	overruns int
	until    time.Time
}

// What becomes of a Placement after it had its turn.
const (
	// TurnDone is the turn of a Placement whose evaluations have ended.
	TurnDone = "done"
	// TurnContinued is one after which there is more to evaluate, and time for that.
	TurnContinued = "continued"
	// TurnFailed is one that ends because the evaluations take too long.
	TurnFailed = "failed"
	// TurnUnchanged is one that is not needed: the clusters that have changed make no difference.
	TurnUnchanged = "unchanged"
)

// turn is how long a Placement may be evaluated now. One that has to wait may not: what
// is remembered may suffice, or there may be nothing to choose from any more.
func (p pace) turn(timeouts Timeouts, now time.Time) time.Duration {
	if p.until.After(now) {
		return 0
	}
	return max(time.Millisecond, min(timeouts.Turn, timeouts.Total-p.spent))
}

// spend notes how long an attempt took, and whether it got done.
func (p *pace) spend(took time.Duration, done bool) {
	if p.spent += took; done {
		p.last, p.spent = p.spent, 0
	}
}

// verdict is what becomes of a Placement after its turn.
type verdict struct {
	turn string
	// delay is when it has the next one, if it needs one.
	delay time.Duration
	// slow tells that it is expensive.
	slow bool
}

// judge says what becomes of a Placement with this result; without one nothing changes.
func (p *pace) judge(timeouts Timeouts, result *placement.Result, now time.Time) verdict {
	switch {
	case result == nil:
		return verdict{turn: TurnDone, slow: p.slow}
	case result.Overrun == nil:
		p.overruns, p.until = 0, time.Time{}
		return verdict{turn: TurnDone, slow: p.last > timeouts.Turn || result.TotalCost > ExpensiveCost}
	case p.until.After(now):
		return verdict{turn: TurnContinued, delay: p.until.Sub(now), slow: true}
	case !result.Overrun.Evaluations && p.spent < timeouts.Total:
		return verdict{turn: TurnContinued, slow: true}
	default:
		delay := delayAfter(p.overruns)
		p.spent, p.until, p.overruns = 0, now.Add(delay), p.overruns+1
		return verdict{turn: TurnFailed, delay: delay, slow: true}
	}
}

// delayAfter doubles with each failure before.
func delayAfter(failures int) time.Duration {
	delay := firstDelay
	for range failures {
		if delay *= 2; delay >= lastDelay {
			return lastDelay
		}
	}
	return delay
}
