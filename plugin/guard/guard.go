// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Queue is what is seen of the scheduling queue: the pods that could be tried now.
type Queue interface {
	PodsInActiveQ() []*v1.Pod
}

// Guard is shared by all profiles of a scheduler. It is safe for concurrent use. nil is a guard that admits all pods for any time.
type Guard struct {
	clock clock.PassiveClock

	// mutex guards the fields below. It is not taken per node.
	mutex    sync.Mutex
	limits   Limits
	program  program
	shares   shares
	backOffs backOffs
	putOff   putOff
	lines    lines
	telling  telling
	// current is the attempt that was admitted last. It is nil if that attempt is known to have ended.
	current *Attempt
	cycle   cycle
	// loop has the time at which Run looks next.
	loop loop
}

// program holds what the scheduler's command has registered, and what it has reported.
type program struct {
	// queue is nil if the program does not show its queue.
	queue   Queue
	waiting waiting
	// leads is nil if the program elects no leader.
	leads func() error
	// begun is closed at the first scheduling cycle. hasBegun reports whether it is closed.
	begun    chan struct{}
	hasBegun bool
}

// New returns a Guard without limits: see [Guard.Configure].
func New(clock clock.PassiveClock) *Guard {
	return &Guard{clock: clock, limits: Limits{SharePercent: 100}, loop: loop{kick: make(chan struct{}, 1)}, program: program{begun: make(chan struct{})}}
}

// Configure sets the limits.
func (g *Guard) Configure(limits Limits) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.limits = limits
}

// Lead has the program say whether it leads, as [Guard.Leads] returns.
func (g *Guard) Lead(check func() error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.program.leads = check
}

// Leads returns an error if another scheduler may lead: nothing is to be written then. A program that
// elects no leader leads.
func (g *Guard) Leads() error {
	g.mutex.Lock()
	check := g.program.leads
	g.mutex.Unlock()
	if check == nil {
		return nil
	}
	return check()
}

// Watch shows the scheduling queue. The program that does so must also tell when scheduling
// cycles begin and end.
func (g *Guard) Watch(queue Queue) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.program.queue = queue
}

// Reason is why a pod is refused.
type Reason string

const (
	// ReasonBackOff means that its claims back off.
	ReasonBackOff Reason = "back_off"
	// ReasonShare means that its namespace has used up its share.
	ReasonShare Reason = "share"
)

// Refusal says why a pod is not tried now. It will be activated.
type Refusal struct {
	Reason  Reason
	Message string
}

// Request is a pod that is to be tried.
type Request struct {
	Pod *v1.Pod
	// Claims are those that want devices.
	Claims []types.UID
	// Timeout is how long the attempt may take while others wait. 0 means any time.
	Timeout time.Duration
	// Activate puts a pod into the queue of those that can be tried.
	Activate func(*v1.Pod)
}

// keys are what backs off: claims may be shared by pods, and pods come again with other
// names. A pod without claims has extended resources.
func (r *Request) keys() []types.UID {
	if len(r.Claims) > 0 {
		return r.Claims
	}
	return []types.UID{r.Pod.UID}
}

// Gate reports whether a pod that wants devices has to wait outside of the queue of the pods that could be tried. The pod is activated when it
// need not wait any more. Gate is called while the scheduling queue is locked, and takes microseconds. Pods of a group are
// queued together, so they are refused when the group is tried.
func (g *Guard) Gate(r Request) bool {
	if r.Pod.Spec.SchedulingGroup != nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	e := newEntry(r.Pod, r.Activate)
	if g.telling.passes(e.key) || g.lines.hasTurn(e) {
		return false
	}
	now := g.clock.Now()
	if longest, waits := g.backOffs.of(r.keys(), now); waits {
		g.putOff.until(e, r.keys(), longest.until)
		g.lookAt(longest.until, now)
	} else if g.limits.SharePercent >= 100 || g.program.queue == nil || g.lines.pass(e, g.mostQueued(r.Pod.Namespace, now), now) {
		return false
	}
	g.telling.wait(e, "", now)
	g.lookAt(now.Add(pollInterval), now)
	return true
}

// Forget drops a pod that was deleted, or bound. The other pods of its group wait as before: a group is dropped when it is
// tried next.
func (g *Guard) Forget(pod *v1.Pod) {
	if pod.Spec.SchedulingGroup != nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.lines.leave(newEntry(pod, nil))
	g.lines.errors.forget(pod)
	g.putOff.leave(pod.UID)
	g.telling.done(pod.UID)
}

// Failed notes that an attempt to schedule a pod found no node, or that the pod could not be bound. After an error the pod backs
// off.
func (g *Guard) Failed(pod *v1.Pod, isError bool) {
	if pod.Spec.SchedulingGroup != nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if isError {
		g.lines.errors.add(pod, g.clock.Now())
	} else {
		g.lines.errors.forget(pod)
	}
}

// mostQueued is the number of pods of a namespace that are queued at a time.
func (g *Guard) mostQueued(namespace string, now time.Time) int {
	if g.shares.tokens(namespace, now, &g.limits) > 0 {
		return maxQueued
	}
	return maxQueuedWithoutShare
}

// Admit begins an attempt, or refuses it. That takes microseconds.
func (g *Guard) Admit(r Request) (*Attempt, *Refusal) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := g.clock.Now()
	g.settle(now)
	e := newEntry(r.Pod, r.Activate)
	hasTurn := g.lines.hasTurn(e)
	g.lines.leave(e)
	g.telling.done(e.key)
	if longest, waits := g.backOffs.of(r.keys(), now); waits {
		g.putOff.until(e, r.keys(), longest.until)
		g.lookAt(longest.until, now)
		return nil, &Refusal{ReasonBackOff, longest.message()}
	}
	g.putOff.leave(e.key)
	if !g.cycle.hasAttempt && !hasTurn && g.isThrottled(r.Pod.Namespace, now) {
		g.lines.join(e, now)
		g.lookAt(now.Add(pollInterval), now)
		return nil, &Refusal{ReasonShare, g.limits.message(r.Pod.Namespace)}
	}
	a := &Attempt{guard: g, namespace: r.Pod.Namespace, keys: r.keys(), timeout: r.Timeout, began: now}
	g.current, g.cycle.hasAttempt = a, g.cycle.isRunning
	if a.timeout > 0 {
		g.lookAt(now.Add(a.timeout), now)
	}
	return a, nil
}

// isThrottled tells whether a namespace has no tokens while others that have some wait.
func (g *Guard) isThrottled(namespace string, now time.Time) bool {
	if g.limits.SharePercent >= 100 || g.shares.tokens(namespace, now, &g.limits) > 0 {
		return false
	}
	return g.othersWait(namespace, now)
}
