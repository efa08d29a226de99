// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pollInterval is how often Run looks for waiting pods of other namespaces while a decision depends on them.
const pollInterval = 25 * time.Millisecond

// loop holds the next wakeup of Run. Run sleeps while there is nothing to do. kick wakes Run if the next wakeup would be too
// late.
type loop struct {
	next time.Time
	kick chan struct{}
}

// lookAt makes Run wake up at the given time or earlier.
func (g *Guard) lookAt(at, now time.Time) {
	if !g.loop.next.IsZero() && !g.loop.next.After(at) && g.loop.next.After(now.Add(-time.Second)) {
		return
	}
	g.loop.next = at
	select {
	case g.loop.kick <- struct{}{}:
	default:
	}
}

// Run activates pods when it is their turn, and ends attempts whose time is over. It returns when ctx is done.
func (g *Guard) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.loop.kick:
		case <-timer.C:
		}
		timer.Stop()
		if wait, any := g.Look(); any {
			timer.Reset(wait)
		}
	}
}

// Look does the work of Run that is due now. wait is the time until more work is due. any is false if Run has no more work.
func (g *Guard) Look() (wait time.Duration, any bool) {
	activate, over, next := g.look()
	if over != nil {
		over.end()
	}
	// Look has released the guard's lock. Activation locks the scheduling queue, and goroutines with that lock wait for the guard.
	for _, r := range activate {
		r.activate(r.pod)
	}
	if next.IsZero() {
		return 0, false
	}
	return max(0, next.Sub(g.clock.Now())), true
}

func (g *Guard) look() (activate []entry, over *Attempt, next time.Time) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := g.clock.Now()
	activate, next = g.putOff.due(now, func(keys []types.UID) (time.Time, bool) {
		entry, backsOff := g.backOffs.of(keys, now)
		return entry.until, backsOff
	})
	activate = append(activate, g.lines.next(now, func(namespace string) shareLimits {
		return shareLimits{g.mostQueued(namespace, now), g.isThrottled(namespace, now)}
	}, g.inQueue)...)
	if len(g.lines.byNamespace) > 0 {
		next = earlier(next, now.Add(pollInterval))
	}
	untold, nextReport := g.unreported.due(now)
	activate = append(activate, untold...)
	if !nextReport.IsZero() {
		next = earlier(next, nextReport)
	}
	if a := g.current; a != nil && a.timeout > 0 {
		end := a.began.Add(a.timeout)
		switch {
		case end.After(now):
			next = earlier(next, end)
		case a.Over() != nil:
		case g.program.queue == nil || g.othersWait(a.namespace, now):
			over = a
		default:
			next = earlier(next, now.Add(pollInterval))
		}
	}
	g.loop.next = next
	return activate, over, next
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earlier returns the earlier time. A zero time in a means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
