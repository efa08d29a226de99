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

// maxWaiting limits the refused pods that a hold stores, to activate them at its end. Other refused pods are tried again after
// another event or after some minutes.
const maxWaiting = 1024

// Ended describes the end of a hold.
type Ended struct {
	Hold
	How End
	// Next is the earliest time of the next try; zero if no try follows.
	Next time.Time
	// Heir is the hold that replaces this one for another pod of the same claims, or nil.
	Heir *Hold
}

// Holds stores the holds of a scheduler, and the foreign holds that it has read. It is safe for concurrent use.
type Holds struct {
	clock clock.WithDelayedExecution
	// ended is called for each hold that ends, without locks.
	ended func(Ended)

	// mutex guards the following fields.
	mutex sync.Mutex
	byPod map[types.UID]*held
	// tries maps a pod to its tries. It contains the pods with a hold, and pods whose hold ended without a binding.
	tries map[types.UID]*tried
}

type held struct {
	Hold
	// timer ends the hold. retry activates its pod.
	timer, retry clock.Timer
	// since is the time at which this process began or read the hold.
	since time.Time
	// restored is true for a hold that another process began.
	restored bool
	// wereFree is true after all claims were found free for the first time.
	wereFree bool
	// isEnding is true for a foreign hold that ends soon.
	isEnding bool
	// evicted has the victims that this process evicted. The value is true for a victim that only went back to the scheduling queue.
	evicted map[types.UID]bool
	// resumes counts repetitions of failed evictions; resumed is the time of the last one.
	resumes int
	resumed time.Time
	// waiting has pods that the hold may have refused.
	waiting map[types.UID]waiting
}

// tried holds the tries for a pod.
type tried struct {
	count int
	// next is the earliest time of the next try.
	next time.Time
	// timer activates the pod at that time.
	timer clock.Timer
}

type waiting struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
	// shares are the claims of the hold that the pod also uses.
	shares []types.UID
}

// New returns empty Holds. ended may be nil.
func New(clock clock.WithDelayedExecution, ended func(Ended)) *Holds {
	if ended == nil {
		ended = func(Ended) {}
	}
	return &Holds{clock: clock, ended: ended, byPod: map[types.UID]*held{}, tries: map[types.UID]*tried{}}
}

// Begin begins a hold and returns it with its number among the pod's holds ([Hold.Try]). If the pod has a hold already, that
// hold continues with the new devices and the same number. Begin breaks holds for pods of a lower priority on the same devices.
// The new hold itself is broken if another scheduler holds one of the devices, see order.go.
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
		// The record has no monotonic time.
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

// End ends the hold of a pod, if any. Pods that the hold may have refused are tried again.
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

// endTry ends a hold of a pod unless another hold has replaced it.
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
		// The evictions count for the heir.
		ended.Evicted = 0
	}
	switch of := h.tries[pod]; {
	case how.isFinal(), ending.Foreign && how == Lost:
		// The other scheduler has reported the end. If it evicted no pod, its next hold may have the same number.
		h.forget(pod)
	case of != nil:
		if how == Unrecorded || how == Broken && ended.Evicted == 0 && !ending.Foreign {
			// No pod was evicted.
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

// stop cancels the back-off.
func (t *tried) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.next, t.timer = time.Time{}, nil
}

// waitFor activates a pod when its back-off is over.
func (h *Holds) waitFor(of *tried, next time.Time, retry func()) {
	of.next = next
	if retry != nil && of.count < MaxTries {
		of.timer = h.clock.AfterFunc(max(next.Sub(h.clock.Now()), 1), retry)
	}
}

// forget removes the tries for a pod.
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

// wait makes the end of the hold activate a pod.
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

// From returns the holds that reserve devices against a pod, sorted by pod name: holds of other pods of the same or a higher
// priority. Devices for claims of the pod are left out, because any pod of a claim may allocate it. When one of the holds ends,
// activate is called with the pod.
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

// PromisedTo maps the victims of holds that the pod could break to the highest priority of the pods they are evicted for.
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

// For returns a hold of another pod for one of the claims. When it ends, activate is called with the pod.
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

// Refuses returns an allocated claim that a pod may not use because of a hold for another pod of the same or a higher priority.
// Either the claim must be freed for that pod, or it has got a reserved device. When the hold ends, activate is called with the
// pod.
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

// Observe ends the hold of a pod that is bound, being deleted or ended. A foreign hold continues for a while after the binding,
// because this process may receive the binding before the allocation of the claims.
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

// endLater ends a hold after the longest delay of informers.
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

// ClaimGone ends the holds for a claim.
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
