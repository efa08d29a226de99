// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"time"

	"github.com/celset/celset/placement"
)

const (
	// DefaultTurn is the default length of a turn. A Placement that needs longer evaluations is expensive.
	DefaultTurn = 250 * time.Millisecond
	// ExpensiveCost is the total cost, in CEL cost units, of all expressions of a Placement on all clusters. Above it a Placement is
	// expensive, however fast the machine is.
	ExpensiveCost = 10_000_000
	// firstDelay and lastDelay are the first and the longest delay after the evaluations of a Placement took too long.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
)

// Timeouts limit the evaluation of Placements. Zero means the default.
type Timeouts struct {
	// Evaluation limits the expressions of one predicate on one cluster; by default [placement.DefaultEvaluationTimeout].
	Evaluation time.Duration
	// Turn limits one turn of a Placement, before others are evaluated; by default [DefaultTurn].
	Turn time.Duration
	// Total limits all turns of one decision; by default [placement.DefaultTimeout].
	Total time.Duration
}

func (t Timeouts) orDefaults() Timeouts {
	return Timeouts{
		Evaluation: cmp.Or(t.Evaluation, placement.DefaultEvaluationTimeout),
		Turn:       cmp.Or(t.Turn, DefaultTurn),
		Total:      cmp.Or(t.Total, placement.DefaultTimeout),
	}
}

// pace holds the evaluation times of one generation of a Placement.
type pace struct {
	generation int64
	// slow is true if the Placement is expensive and belongs to the slow queue. It is false at first.
	slow bool
	// spent is the evaluation time of the decision in progress, last the evaluation time of the last complete decision.
	spent, last time.Duration
	// overruns counts consecutive decisions that took too long. After an overrun, the Placement waits until the time in until.
	overruns int
	until    time.Time
}

// Results of a turn.
const (
	// TurnDone means that the evaluations of the Placement are complete.
	TurnDone = "done"
	// TurnContinued means that the evaluations are incomplete and will continue in another turn.
	TurnContinued = "continued"
	// TurnFailed means that the evaluations take too long.
	TurnFailed = "failed"
	// TurnUnchanged means that no evaluation was needed, because the changed clusters don't affect the Placement.
	TurnUnchanged = "unchanged"
)

// turn returns how long a Placement may be evaluated now. It returns 0 while the Placement waits after an overrun. It may be
// decided even then: stored verdicts may suffice, or no cluster may be left to choose from.
func (p pace) turn(timeouts Timeouts, now time.Time) time.Duration {
	if p.until.After(now) {
		return 0
	}
	return max(time.Millisecond, min(timeouts.Turn, timeouts.Total-p.spent))
}

// spend adds the time of an attempt to spent. done is true if the decision is complete.
func (p *pace) spend(took time.Duration, done bool) {
	if p.spent += took; done {
		p.last, p.spent = p.spent, 0
	}
}

// verdict is the result of a turn: how a Placement continues.
type verdict struct {
	turn string
	// delay is the time until the next turn, if there is one.
	delay time.Duration
	// slow is true if the Placement is expensive.
	slow bool
}

// judge updates the pace for a result and returns the verdict. A nil result changes nothing.
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

// delayAfter returns the delay, which doubles with each earlier failure.
func delayAfter(failures int) time.Duration {
	delay := firstDelay
	for range failures {
		if delay *= 2; delay >= lastDelay {
			return lastDelay
		}
	}
	return delay
}
