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

// Queue is the part of the scheduling queue that the guard reads: the pods that could be tried now.
type Queue interface {
	PodsInActiveQ() []*v1.Pod
}

// Guard decides which pods the scheduler may try now, for all profiles of a scheduler. It is safe for concurrent use.
type Guard struct {
	clock clock.PassiveClock

	// mutex guards the fields below. An attempt locks it a few times, but not once for each node.
	mutex      sync.Mutex
	limits     Limits
	program    program
	shares     shares
	backOffs   backOffs
	putOff     putOff
	lines      lines
	unreported unreported
	// current is the attempt that was admitted last. It is nil after settle has handled the end of that attempt.
	current *Attempt
	cycle   cycle
	// loop has the next wakeup of Run.
	loop loop
}

// program holds what the scheduler's command provides: its queue, its leader check and the start of its first cycle.
type program struct {
	// queue is nil if the command does not provide its scheduling queue.
	queue   Queue
	waiting waiting
	// leads is nil without leader election.
	leads func() error
	// started is closed when the first scheduling cycle begins. hasStarted is true after that.
	started    chan struct{}
	hasStarted bool
}

// New returns a Guard without shares and back-offs. [Guard.Configure] sets them.
func New(clock clock.PassiveClock) *Guard {
	return &Guard{clock: clock, limits: Limits{SharePercent: 100}, loop: loop{kick: make(chan struct{}, 1)}, program: program{started: make(chan struct{})}}
}

// Configure sets the shares and back-offs for all namespaces.
func (g *Guard) Configure(limits Limits) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.limits = limits
}

// Lead sets the check that [Guard.Leads] calls. check returns an error if another scheduler process may be the leader.
func (g *Guard) Lead(check func() error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.program.leads = check
}

// Leads returns an error if another scheduler process may be the leader, so that this process must not write. Without leader
// election it returns nil.
func (g *Guard) Leads() error {
	g.mutex.Lock()
	check := g.program.leads
	g.mutex.Unlock()
	if check == nil {
		return nil
	}
	return check()
}

// Watch sets the scheduling queue. The program must then also call CycleBegan and CycleEnded.
func (g *Guard) Watch(queue Queue) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.program.queue = queue
}

// Reason is the reason for a refusal.
type Reason string

const (
	// ReasonBackOff means that a claim of the pod is in back-off.
	ReasonBackOff Reason = "back_off"
	// ReasonShare means that the pod's namespace has used up its share of the scheduler's time.
	ReasonShare Reason = "share"
)

// Refusal explains why a pod is not tried now. The guard activates the pod later.
type Refusal struct {
	Reason  Reason
	Message string
}

// Request asks the guard to admit a pod to a scheduling attempt.
type Request struct {
	Pod *v1.Pod
	// Claims has the UIDs of the pod's unallocated claims.
	Claims []types.UID
	// Timeout is the duration of the attempt after which other waiting pods end it. 0 means no limit.
	Timeout time.Duration
	// Activate moves a pod to the active queue.
	Activate func(*v1.Pod)
}

// keys returns the UIDs whose back-off applies to the pod: its claims, because pods may share claims and may be recreated under
// other names. A pod with extended resources has no claims yet, so its own UID is the key.
func (r *Request) keys() []types.UID {
	if len(r.Claims) > 0 {
		return r.Claims
	}
	return []types.UID{r.Pod.UID}
}

// Gate reports whether a pod that needs devices must wait outside of the active queue. When the wait is over, the guard
// activates the pod. The caller holds the lock of the scheduling queue, so Gate takes only microseconds. Gate never stops a pod
// of a group, because the pods of a group are queued together. Admit refuses the group instead.
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

// Forget drops a pod that was deleted or bound. It keeps a pod that belongs to a group, because the other pods of the group
// still wait. The group is dropped when it is tried next.
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

// Failed records that an attempt found no node for the pod, or that the pod could not be bound. isError is true if the attempt
// ended with an error. The pod then waits for a back-off.
func (g *Guard) Failed(pod *v1.Pod, isError bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	// Admit and Refused do this, too, but neither runs if the attempt of a group was refused before Admit.
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

// Admit begins an attempt for the pod, or refuses the pod. It takes microseconds.
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
