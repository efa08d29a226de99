// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"time"

	"github.com/celset/celset/placement"
)

const (
	// DefaultTurn is the default duration of a turn. A Placement whose evaluations take longer is expensive.
	DefaultTurn = 250 * time.Millisecond
	// ExpensiveCost is a limit in CEL cost units. If all expressions of a Placement cost more on all clusters together, the
	// Placement is expensive, however fast the machine is.
	ExpensiveCost = 10_000_000
	// firstDelay and lastDelay are the shortest and the longest delay after the evaluations of a Placement took too long.
	firstDelay = time.Second
	lastDelay  = 5 * time.Minute
)

// Timeouts limit the evaluation of Placements. Zero means the default.
type Timeouts struct {
	// Evaluation limits the evaluation of one predicate on one cluster. The default is [placement.DefaultEvaluationTimeout].
	Evaluation time.Duration
	// Turn limits one turn of a Placement. After it, other Placements are evaluated. The default is [DefaultTurn].
	Turn time.Duration
	// Total limits all turns of one decision together. The default is [placement.DefaultTimeout].
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
	// slow is true if the Placement is expensive and belongs to the slow queue. A new Placement is not slow.
	slow bool
	// spent is the evaluation time of the decision in progress. last is the evaluation time of the last complete decision.
	spent, last time.Duration
	// overruns counts consecutive decisions that took too long. After such a decision, the Placement is not evaluated before
	// until.
	overruns int
	until    time.Time
}

// The results of a turn. A turn is the time to evaluate one Placement before other Placements are evaluated.
const (
	// TurnDone means that the evaluations of the Placement are complete.
	TurnDone = "done"
	// TurnContinued means that the evaluations are incomplete and continue in another turn.
	TurnContinued = "continued"
	// TurnFailed means that the evaluations took too long in all turns together, or that one evaluation took too long.
	TurnFailed = "failed"
	// TurnUnchanged means that nothing was evaluated, because the changed clusters don't affect the Placement.
	TurnUnchanged = "unchanged"
)

// turn returns how long the Placement may be evaluated now. It returns 0 while the Placement waits after an overrun. The
// Placement may still be decided then, if stored verdicts suffice or if no cluster can be selected.
func (p pace) turn(timeouts Timeouts, now time.Time) time.Duration {
	if p.until.After(now) {
		return 0
	}
	return max(time.Millisecond, min(timeouts.Turn, timeouts.Total-p.spent))
}

// spend adds the evaluation time of an attempt. done is true if the attempt completed the decision.
func (p *pace) spend(took time.Duration, done bool) {
	if p.spent += took; done {
		p.last, p.spent = p.spent, 0
	}
}

// verdict is the result of a turn. It determines the time of the Placement's next turn and the Placement's queue.
type verdict struct {
	turn string
	// delay is the time until the next turn, if there is a next turn.
	delay time.Duration
	// slow is true if the Placement is expensive.
	slow bool
}

// judge returns the verdict for the result of a turn, and updates the pace. If result is nil, the pace stays unchanged.
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

// delayAfter returns the delay after the given number of earlier failures. It doubles with each failure.
func delayAfter(failures int) time.Duration {
	delay := firstDelay
	for range failures {
		if delay *= 2; delay >= lastDelay {
			return lastDelay
		}
	}
	return delay
}
