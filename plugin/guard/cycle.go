// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// seenFor is how long what was seen of the queue is good for, at least.
const seenFor = 10 * time.Millisecond

// pause is the time until the pods of the queue are listed again. Listing many pods takes longer than trying one of them,
// some 100 ns for each.
func pause(pods int) time.Duration { return max(seenFor, time.Duration(pods)*10*time.Microsecond) }

// cycle is the scheduling cycle that the program said had begun.
type cycle struct {
	isRunning bool
	namespace string
	began     time.Time
	// hasAttempt: an attempt was admitted in the cycle. The pods of a group are tried in one cycle. If one of them were refused
	// for the share because those before it have used it up, none could run.
	hasAttempt bool
}

// Begun is closed when the program first tells of a cycle: this process schedules. With leader election
// only the leader does.
func (g *Guard) Begun() <-chan struct{} { return g.program.begun }

func (g *Guard) begin() {
	if !g.program.hasBegun {
		g.program.hasBegun = true
		close(g.program.begun)
	}
}

// CycleBegan tells that the scheduler begins with a pod of the namespace.
func (g *Guard) CycleBegan(namespace string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.begin()
	g.cycle = cycle{isRunning: true, namespace: namespace, began: g.clock.Now()}
}

// CycleEnded tells that it is done with it. All of the time is the namespace's, whatever it
// was spent on.
func (g *Guard) CycleEnded() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.begin()
	now := g.clock.Now()
	g.settle(now)
	g.cycle = cycle{}
	if g.lines.wait() {
		// The next pod in line need not wait for the loop.
		g.lookAt(now, now)
	}
}

// settle charges for what was done until now. When an attempt ended is not known if the
// program does not tell: then what counts is when it was last seen. Claims whose attempt
// ended within its limits don't back off any more, whether they got devices or not.
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

// waiting are the namespaces of the pods that could be tried.
type waiting struct {
	namespaces sets.Set[string]
	// until is the time at which the queue is looked at again.
	until time.Time
}

// inQueue returns the pods in the queue of those that could be tried.
func (g *Guard) inQueue() []*v1.Pod {
	if g.program.queue == nil {
		return nil
	}
	return g.program.queue.PodsInActiveQ()
}

// othersWait tells whether pods of other namespaces wait that have not used up their shares.
func (g *Guard) othersWait(namespace string, now time.Time) bool {
	if g.program.queue == nil {
		return false
	}
	if g.program.waiting.namespaces == nil || !g.program.waiting.until.After(now) {
		pods := g.inQueue()
		g.program.waiting = waiting{sets.New[string](), now.Add(pause(len(pods)))}
		for _, pod := range pods {
			g.program.waiting.namespaces.Insert(pod.Namespace)
		}
	}
	for other := range g.program.waiting.namespaces {
		if other != namespace && g.shares.tokens(other, now, &g.limits) > 0 {
			return true
		}
	}
	return false
}
