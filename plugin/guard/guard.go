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

// Queue is the guard's view of the scheduling queue: the pods that could be tried now.
type Queue interface {
	PodsInActiveQ() []*v1.Pod
}

// Guard decides which pods the scheduler may try now, for all profiles of a scheduler. It is safe for concurrent use. A nil
// Guard admits all pods without limits.
type Guard struct {
	clock clock.PassiveClock

	// mutex guards the fields below. It is not taken per node.
	mutex      sync.Mutex
	limits     Limits
	program    program
	shares     shares
	backOffs   backOffs
	putOff     putOff
	lines      lines
	unreported unreported
	// current is the attempt that was admitted last. It is nil once the guard has noticed its end.
	current *Attempt
	cycle   cycle
	// loop has the time at which Run wakes up next.
	loop loop
}

// program holds the queue and the leader check of the scheduler's command, and its reports.
type program struct {
	// queue is nil if the program does not show its queue.
	queue   Queue
	waiting waiting
	// leads is nil if the program elects no leader.
	leads func() error
	// started is closed at the first scheduling cycle. hasStarted reports whether it is closed.
	started    chan struct{}
	hasStarted bool
}

// New returns a Guard without limits: see [Guard.Configure].
func New(clock clock.PassiveClock) *Guard {
	return &Guard{clock: clock, limits: Limits{SharePercent: 100}, loop: loop{kick: make(chan struct{}, 1)}, program: program{started: make(chan struct{})}}
}

// Configure sets the limits.
func (g *Guard) Configure(limits Limits) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.limits = limits
}

// Lead sets the check for [Guard.Leads]: a function that returns an error if another scheduler may lead.
func (g *Guard) Lead(check func() error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.program.leads = check
}

// Leads returns an error if another scheduler may lead, so that nothing may be written. Without leader election it returns nil.
func (g *Guard) Leads() error {
	g.mutex.Lock()
	check := g.program.leads
	g.mutex.Unlock()
	if check == nil {
		return nil
	}
	return check()
}

// Watch sets the scheduling queue. The program must then also report the beginning and end of scheduling cycles.
func (g *Guard) Watch(queue Queue) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.program.queue = queue
}

// Reason is the reason for a refusal.
type Reason string

const (
	// ReasonBackOff means that the pod's claims back off.
	ReasonBackOff Reason = "back_off"
	// ReasonShare means that the pod's namespace has used up its share.
	ReasonShare Reason = "share"
)

// Refusal is the reason why a pod is not tried now. The guard activates the pod later.
type Refusal struct {
	Reason  Reason
	Message string
}

// Request is the request to try a pod.
type Request struct {
	Pod *v1.Pod
	// Claims has the UIDs of the claims that need devices.
	Claims []types.UID
	// Timeout limits the attempt while other pods wait. 0 means no limit.
	Timeout time.Duration
	// Activate moves a pod to the active queue.
	Activate func(*v1.Pod)
}

// keys returns the UIDs that back off: the claims, because pods may share claims and may be recreated under other names. A pod
// without claims, which has extended resources, backs off itself.
func (r *Request) keys() []types.UID {
	if len(r.Claims) > 0 {
		return r.Claims
	}
	return []types.UID{r.Pod.UID}
}

// Gate reports whether a pod that needs devices must wait outside of the active queue. When the wait is over, the guard
// activates the pod. Gate is called while the scheduling queue is locked, and takes microseconds. Pods of a group are queued
// together, so the group is refused when it is tried.
func (g *Guard) Gate(r Request) bool {
	if r.Pod.Spec.SchedulingGroup != nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	e := newEntry(r.Pod, r.Activate)
	if g.unreported.passes(e.key) || g.lines.hasTurn(e) {
		return false
	}
	now := g.clock.Now()
	if longest, waits := g.backOffs.of(r.keys(), now); waits {
		g.putOff.until(e, r.keys(), longest.until)
		g.lookAt(longest.until, now)
	} else if g.limits.SharePercent >= 100 || g.program.queue == nil || g.lines.pass(e, g.mostQueued(r.Pod.Namespace, now), now) {
		return false
	}
	g.unreported.wait(e, "", now)
	g.lookAt(now.Add(pollInterval), now)
	return true
}

// Forget drops a pod that was deleted or bound. The other pods of its group still wait: a group is dropped when it is tried next.
func (g *Guard) Forget(pod *v1.Pod) {
	if pod.Spec.SchedulingGroup != nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.lines.leave(newEntry(pod, nil))
	g.lines.errors.forget(pod)
	g.putOff.leave(pod.UID)
	g.unreported.done(pod.UID)
}

// Failed records that an attempt found no node for a pod, or that the pod could not be bound. After an error the pod backs off.
func (g *Guard) Failed(pod *v1.Pod, isError bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	// The attempt may have been refused before Admit was called. For pods of a group, no PostFilter calls Refused.
	g.unreported.done(keyOf(pod))
	if pod.Spec.SchedulingGroup != nil {
		return
	}
	if isError {
		g.lines.errors.add(pod, g.clock.Now())
	} else {
		g.lines.errors.forget(pod)
	}
}

// Admit begins an attempt or refuses it. It takes microseconds.
func (g *Guard) Admit(r Request) (*Attempt, *Refusal) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := g.clock.Now()
	g.settle(now)
	e := newEntry(r.Pod, r.Activate)
	hasTurn := g.lines.hasTurn(e)
	g.lines.leave(e)
	g.unreported.done(e.key)
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
