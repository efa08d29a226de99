// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import "time"

// cycle is the current scheduling cycle, as the scheduler's command reports it.
type cycle struct {
	isRunning bool
	namespace string
	began     time.Time
	// hasAttempt is true after the first attempt of the cycle was admitted. All pods of a group are tried in one cycle. Later
	// pods of the group must not be refused for the share, because then the group could never run.
	hasAttempt bool
}

// Started returns a channel that is closed at the first reported cycle. From then on this process schedules pods. With leader
// election, this process is then the leader.
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

// CycleEnded reports the end of the cycle. The guard charges the namespace for the whole duration of the cycle.
func (g *Guard) CycleEnded() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.begin()
	now := g.clock.Now()
	g.settle(now)
	g.cycle = cycle{}
	if g.lines.wait() {
		// Run must queue the next pod of a line now, not at its next wakeup.
		g.lookAt(now, now)
	}
}

// settle charges the namespace of the current attempt for the time until now. If the program doesn't report cycles, the attempt
// ended with its last call of Progress. settle also ends the back-off of claims whose attempt stayed within its limits, whether
// or not the claims got devices.
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
