// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"cmp"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/clock"
)

// maxWaiting limits the refused pods that one hold stores. At its end, the hold activates the stored pods. Other refused pods
// are retried after another event or after some minutes.
const maxWaiting = 1024

// Ended describes the end of a hold.
type Ended struct {
	Hold
	How End
	// Next is the earliest time of the pod's next try. It is zero if no try follows.
	Next time.Time
	// Heir is the hold that continues this one for another pod of the same claims, or nil.
	Heir *Hold
}

// Holds stores the holds of a scheduler, and the foreign holds that the scheduler has read. It is safe for concurrent use.
type Holds struct {
	clock clock.WithDelayedExecution
	// ended is called after each end of a hold. The caller holds no locks.
	ended func(Ended)

	// mutex guards the following fields.
	mutex sync.Mutex
	byPod map[types.UID]*held
	// tries maps the UID of a pod to its tries. It contains pods with a hold, and pods whose hold ended without a binding.
	tries map[types.UID]*tried
}

type held struct {
	Hold
	// timer ends the hold when its time is over. retry activates the pod of the hold.
	timer, retry clock.Timer
	// since is the time at which this process began the hold or read its record.
	since time.Time
	// restored is true if another process began the hold.
	restored bool
	// wereFree is true after NoteFree was called for the hold.
	wereFree bool
	// isEnding is true if the pod of a foreign hold is bound, so that the hold ends soon.
	isEnding bool
	// evicted has the victims that this process evicted. The value is true if the victim was not deleted, but only returned to
	// the scheduling queue.
	evicted map[types.UID]bool
	// resumes counts how often failed evictions were repeated. resumed is the time of the last repetition.
	resumes int
	resumed time.Time
	// waiting maps UIDs to pods that the hold may have refused. They are activated when the hold ends.
	waiting map[types.UID]waiting
}

// tried counts the tries of a pod.
type tried struct {
	count int
	// next is the earliest time of the next try.
	next time.Time
	// timer activates the pod at next.
	timer clock.Timer
}

type waiting struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
	// shares holds the claims of the hold that the pod also uses. Such a pod may inherit the hold.
	shares []types.UID
}

// New returns empty Holds. ended may be nil.
func New(clock clock.WithDelayedExecution, ended func(Ended)) *Holds {
	if ended == nil {
		ended = func(Ended) {}
	}
	return &Holds{clock: clock, ended: ended, byPod: map[types.UID]*held{}, tries: map[types.UID]*tried{}}
}

// Begin begins a hold and returns it with its number in Hold.Try. If the pod already has a hold, that hold continues with the
// new devices and the same number. Begin breaks the holds of lower-priority pods on the same devices. It breaks the new hold
// itself if a competing hold of another scheduler precedes it (order.go).
func (h *Holds) Begin(hold Hold) Hold { return h.begin(hold, false) }

func (h *Holds) begin(hold Hold, restored bool) Hold {
	uid := hold.Pod.UID
	keeping := &held{since: h.clock.Now(), restored: restored, evicted: map[types.UID]bool{}, waiting: map[types.UID]waiting{}}
	h.mutex.Lock()
	former := h.byPod[uid]
	if former != nil {
		former.stop()
		hold.Try, hold.Began, hold.Joined, keeping.restored = former.Try, former.Began, former.Joined, former.restored
		keeping.evicted, keeping.resumes, keeping.resumed = former.evicted, former.resumes, former.resumed
	}
	of := h.tries[uid]
	if of == nil {
		of = &tried{}
		h.tries[uid] = of
	}
	of.stop()
	if hold.Try == 0 {
		hold.Try = of.count + 1
	}
	of.count = hold.Try
	if hold.Began.IsZero() && !restored {
		// The recorded time has no monotonic part, so the stored time has no monotonic part either.
		hold.Began = h.clock.Now().Round(0)
	}
	keeping.Hold = hold
	keeping.timer = h.clock.AfterFunc(max(hold.Until.Sub(h.clock.Now()), 1), func() { h.endTry(uid, keeping, TimedOut) })
	if hold.Retry != nil {
		keeping.retry = h.clock.AfterFunc(untilKnown, hold.Retry)
	}
	h.byPod[uid] = keeping
	broken := h.brokenBy(keeping)
	h.mutex.Unlock()
	for _, uid := range broken {
		h.End(uid, Broken)
	}
	if former != nil {
		former.activate()
	}
	return hold
}

// End ends the hold of a pod, if there is one, and activates the pods that the hold may have refused.
func (h *Holds) End(pod types.UID, how End) {
	h.mutex.Lock()
	ending := h.byPod[pod]
	h.mutex.Unlock()
	if ending != nil {
		h.endTry(pod, ending, how)
		return
	}
	if how.isFinal() {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		h.forget(pod)
	}
}

// endTry ends a hold unless a newer hold of the pod has replaced it.
func (h *Holds) endTry(pod types.UID, ending *held, how End) {
	h.mutex.Lock()
	if h.byPod[pod] != ending {
		h.mutex.Unlock()
		return
	}
	delete(h.byPod, pod)
	ending.stop()
	ended := Ended{Hold: ending.Hold, How: how}
	var broken []types.UID
	if how == Deleted {
		ended.Heir, broken = h.inherit(ending)
	}
	ended.Evicted = len(ending.evicted)
	if ending.restored {
		ended.Evicted = len(ending.Victims)
	}
	if ended.Heir != nil {
		// The heir's hold takes over these evictions.
		ended.Evicted = 0
	}
	switch of := h.tries[pod]; {
	case how.isFinal(), ending.Foreign && how == Lost:
		// If the other scheduler's hold evicted no pod, its next hold may have the same number, so the number must be forgotten.
		h.forget(pod)
	case of != nil:
		if how == Unrecorded || how == Broken && ended.Evicted == 0 && !ending.Foreign {
			// No pod was evicted, so the hold does not count as a try.
			of.count--
			ended.Try = of.count
		}
		ended.Next = h.clock.Now().Add(backOff(of.count))
		h.waitFor(of, ended.Next, ending.Retry)
	}
	h.mutex.Unlock()
	h.ended(ended)
	for _, uid := range broken {
		h.End(uid, Broken)
	}
	ending.activate()
}

// stop cancels the timer that ends the back-off.
func (t *tried) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.next, t.timer = time.Time{}, nil
}

// waitFor starts a pod's back-off until next. At its end, retry activates the pod, unless no tries are left.
func (h *Holds) waitFor(of *tried, next time.Time, retry func()) {
	of.next = next
	if retry != nil && of.count < MaxTries {
		of.timer = h.clock.AfterFunc(max(next.Sub(h.clock.Now()), 1), retry)
	}
}

// forget removes the record of a pod's tries.
func (h *Holds) forget(pod types.UID) {
	if of := h.tries[pod]; of != nil {
		of.stop()
	}
	delete(h.tries, pod)
}

func (h *held) stop() {
	h.timer.Stop()
	if h.retry != nil {
		h.retry.Stop()
	}
}

func (h *held) activate() {
	for _, waiting := range h.waiting {
		waiting.activate(waiting.pod)
	}
}

// wait stores a pod that is activated when the hold ends.
func (h *held) wait(pod *v1.Pod, activate func(*v1.Pod), shares ...types.UID) {
	if _, known := h.waiting[pod.UID]; known || len(h.waiting) < maxWaiting {
		h.waiting[pod.UID] = waiting{pod, activate, shares}
	}
}

// Of returns the hold of a pod.
func (h *Holds) Of(pod types.UID) (hold Hold, ok bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if held := h.byPod[pod]; held != nil {
		return held.Hold, true
	}
	return Hold{}, false
}

// Count returns the number of holds of this scheduler.
func (h *Holds) Count() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	count := 0
	for _, held := range h.byPod {
		if !held.Foreign {
			count++
		}
	}
	return count
}

// From returns the holds whose devices the pod must not get: holds of other pods of the same or a higher priority, sorted by
// pod name. Devices held for the given claims are left out, because any pod of a claim may allocate it. If one of the returned
// holds ends, activate is called with the pod.
func (h *Holds) From(pod *v1.Pod, claims []types.UID, activate func(*v1.Pod)) []Hold {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var from []Hold
	for _, held := range h.byPod {
		if !h.isBefore(held, pod) {
			continue
		}
		if rest := held.without(claims); len(rest.Claims) > 0 {
			from = append(from, rest)
			held.wait(pod, activate)
		}
	}
	slices.SortFunc(from, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return from
}

// PromisedTo returns the victims of lower-priority pods' holds, which the pod could break. Each victim is mapped to the highest
// priority of the pods that it is evicted for.
func (h *Holds) PromisedTo(pod *v1.Pod) map[types.UID]int32 {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	promised := map[types.UID]int32{}
	for uid, held := range h.byPod {
		priority := corev1helpers.PodPriority(held.Pod)
		if uid == pod.UID || priority >= corev1helpers.PodPriority(pod) {
			continue
		}
		for _, victim := range held.Victims {
			if before, ok := promised[victim]; !ok || before < priority {
				promised[victim] = priority
			}
		}
	}
	return promised
}

// For returns a hold of another pod for one of the claims, if there is one. If that hold ends, activate is called with the pod.
func (h *Holds) For(pod *v1.Pod, claims []types.UID, activate func(*v1.Pod)) (hold Hold, ok bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for uid, held := range h.byPod {
		if uid != pod.UID && slices.ContainsFunc(claims, held.isFor) {
			held.wait(pod, activate, slices.DeleteFunc(slices.Clone(claims), func(claim types.UID) bool { return !held.isFor(claim) })...)
			return held.Hold, true
		}
	}
	return Hold{}, false
}

// Refuses returns an allocated claim that the pod may not use, or nil. Either the claim must be freed for another pod of the
// same or a higher priority, or the claim has a device held for such a pod. If that pod's hold ends, activate is called with
// the pod.
func (h *Holds) Refuses(pod *v1.Pod, allocated []*resourceapi.ResourceClaim, activate func(*v1.Pod)) *resourceapi.ResourceClaim {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, held := range h.byPod {
		if !h.isBefore(held, pod) {
			continue
		}
		for _, claim := range allocated {
			if claim.Status.Allocation == nil || held.isFor(claim.UID) {
				continue
			}
			if slices.Contains(held.Frees, claim.UID) || held.hasAny(wholeDevices(claim.Status.Allocation.Devices.Results)) {
				held.wait(pod, activate)
				return claim
			}
		}
	}
	return nil
}

// Observe ends the hold of a pod that is bound, deleted or ended. A foreign hold lasts some time after the binding, because
// this process may receive the binding before the allocation of the claims.
func (h *Holds) Observe(pod *v1.Pod) {
	held, _ := h.Of(pod.UID)
	how, over := IsOver(pod, held.Node)
	switch {
	case over && held.Foreign && how != Deleted:
		h.endLater(pod.UID, how)
	case over:
		h.End(pod.UID, how)
	}
}

// endLater ends a hold after the maximum delay of informers.
func (h *Holds) endLater(pod types.UID, how End) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	ending := h.byPod[pod]
	if ending == nil || ending.isEnding {
		return
	}
	ending.isEnding = true
	ending.timer.Stop()
	ending.timer = h.clock.AfterFunc(untilKnown, func() { h.endTry(pod, ending, how) })
}

// ClaimGone ends all holds with devices for a deleted claim.
func (h *Holds) ClaimGone(claim types.UID) {
	var useless []types.UID
	h.mutex.Lock()
	for uid, held := range h.byPod {
		if held.isFor(claim) {
			useless = append(useless, uid)
		}
	}
	h.mutex.Unlock()
	for _, uid := range useless {
		h.End(uid, ClaimDeleted)
	}
}
