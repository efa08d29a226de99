// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import "time"

// cycle is the scheduling cycle that the program reported.
type cycle struct {
	isRunning bool
	namespace string
	began     time.Time
	// hasAttempt is true after an attempt was admitted in the cycle. All pods of a group are tried in one cycle. Later pods must not
	// be refused for the share, because then the group could never run.
	hasAttempt bool
}

// Started returns a channel that is closed at the first reported cycle. From then on this process schedules; with leader election,
// it is the leader.
func (g *Guard) Started() <-chan struct{} { return g.program.started }

func (g *Guard) begin() {
	if !g.program.hasStarted {
		g.program.hasStarted = true
		close(g.program.started)
	}
}

// CycleBegan reports that the scheduler starts a cycle for a pod of the namespace.
func (g *Guard) CycleBegan(namespace string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.begin()
	g.cycle = cycle{isRunning: true, namespace: namespace, began: g.clock.Now()}
}

// CycleEnded reports the end of the cycle. The namespace is charged for the whole time of the cycle.
func (g *Guard) CycleEnded() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.begin()
	now := g.clock.Now()
	g.settle(now)
	g.cycle = cycle{}
	if g.lines.wait() {
		// The next pod in line must not wait for the loop.
		g.lookAt(now, now)
	}
}

// settle charges the namespace for the time until now. If the program doesn't report cycles, the last progress counts as the end
// of an attempt. Claims stop backing off if their attempt stayed within its limits, whether they got devices or not.
func (g *Guard) settle(now time.Time) {
	if g.current != nil && !g.current.failed.Load() {
		g.backOffs.forget(g.current.keys)
	}
	switch {
	case g.cycle.isRunning:
		g.shares.charge(g.cycle.namespace, now.Sub(g.cycle.began), now, &g.limits)
		g.cycle.began = now
	case g.current != nil:
		g.shares.charge(g.current.namespace, time.Duration(g.current.reached.Load()), now, &g.limits)
	}
	g.current = nil
}
