// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// pace is how long a Placement takes.
type pace struct {
	uid        types.UID
	generation int64
	// slow tells that it is expensive, and belongs to the slow queue.
	slow bool
	// spent is how long it was evaluated since the last outcome, last how long that took.
	spent, last time.Duration
	// overruns is how often in a row that took too long; until then it waits.
	overruns int
	until    time.Time
}

// paces are those of all Placements that are decided here.
type paces struct {
	timeouts Timeouts
	mutex    sync.Mutex
	of       map[types.NamespacedName]pace
}

func newPaces(timeouts Timeouts) *paces {
	return &paces{timeouts: timeouts, of: map[types.NamespacedName]pace{}}
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

// slow tells whether a Placement belongs to the slow queue. A new one does not.
func (p *paces) slow(key types.NamespacedName) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.of[key].slow
}

// turn is how long a Placement may be evaluated now. One that has to wait may not: what
// is remembered may suffice, or there may be nothing to choose from any more.
func (p *paces) turn(object *clusterv1beta1.Placement, now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.known(object)
	if known.until.After(now) {
		return 0
	}
	return max(time.Millisecond, min(p.timeouts.Turn, p.timeouts.Total-known.spent))
}

// known is the pace of an object. What was found of an earlier version of it holds
// only as far as the queue is concerned: to mend an expression ends the wait.
func (p *paces) known(object *clusterv1beta1.Placement) pace {
	known := p.of[client.ObjectKeyFromObject(object)]
	if known.uid != object.UID || known.generation != object.Generation {
		return pace{uid: object.UID, generation: object.Generation, slow: known.slow}
	}
	return known
}

// spend notes how long an attempt took, and whether it got done.
func (p *paces) spend(object *clusterv1beta1.Placement, took time.Duration, done bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.known(object)
	if known.spent += took; done {
		known.last, known.spent = known.spent, 0
	}
	p.of[client.ObjectKeyFromObject(object)] = known
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
func (p *paces) judge(object *clusterv1beta1.Placement, result *placement.Result, now time.Time) verdict {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.known(object)
	defer func() { p.of[client.ObjectKeyFromObject(object)] = known }()
	switch {
	case result == nil:
		return verdict{turn: TurnDone, slow: known.slow}
	case result.Overrun == nil:
		known.overruns, known.until = 0, time.Time{}
		return verdict{turn: TurnDone, slow: known.last > p.timeouts.Turn || result.TotalCost > ExpensiveCost}
	case known.until.After(now):
		return verdict{turn: TurnContinued, delay: known.until.Sub(now), slow: true}
	case !result.Overrun.Evaluations && known.spent < p.timeouts.Total:
		return verdict{turn: TurnContinued, slow: true}
	default:
		delay := delayAfter(known.overruns)
		known.spent, known.until, known.overruns = 0, now.Add(delay), known.overruns+1
		return verdict{turn: TurnFailed, delay: delay, slow: true}
	}
}

// move puts a Placement into one of the queues. Then a worker of that may have it: this
// is the last that is done.
func (p *paces) move(object *clusterv1beta1.Placement, slow bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	known := p.known(object)
	known.slow = slow
	p.of[client.ObjectKeyFromObject(object)] = known
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

func (p *paces) forget(key types.NamespacedName) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.of, key)
}
