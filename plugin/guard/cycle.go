// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// seenFor is how long what was seen of the queue is good for. To list the pods in it takes
// longer than to try one of them, if there are many.
const seenFor = 10 * time.Millisecond

// cycle is the scheduling cycle that the program said had begun.
type cycle struct {
	isRunning bool
	namespace string
	began     time.Time
}

// Begun is closed when the program first tells of a cycle: this process schedules. With leader election
// only the leader does.
func (g *Guard) Begun() <-chan struct{} { return g.begun }

func (g *Guard) begin() {
	if !g.isBegun {
		g.isBegun = true
		close(g.begun)
	}
}

// CycleBegan tells that the scheduler begins with a pod of the namespace.
func (g *Guard) CycleBegan(namespace string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.begin()
	g.cycle = cycle{true, namespace, g.clock.Now()}
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
	at         time.Time
}

// inQueue returns the UIDs of the pods in the queue of those that could be tried.
func (g *Guard) inQueue() sets.Set[types.UID] {
	uids := sets.New[types.UID]()
	if g.queue != nil {
		for _, pod := range g.queue.PodsInActiveQ() {
			uids.Insert(pod.UID)
		}
	}
	return uids
}

// othersWait tells whether pods of other namespaces wait that have not used up their shares.
func (g *Guard) othersWait(namespace string, now time.Time) bool {
	if g.queue == nil {
		return false
	}
	if g.waiting.namespaces == nil || now.Sub(g.waiting.at) >= seenFor {
		g.waiting = waiting{sets.New[string](), now}
		for _, pod := range g.queue.PodsInActiveQ() {
			g.waiting.namespaces.Insert(pod.Namespace)
		}
	}
	for other := range g.waiting.namespaces {
		if other != namespace && g.shares.tokens(other, now, &g.limits) > 0 {
			return true
		}
	}
	return false
}
