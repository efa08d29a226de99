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
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/clock"
)

// End is how a hold ended.
type End string

const (
	// Bound means that the pod has its devices, on its node.
	Bound End = "bound"
	// Deleted means that the pod is gone.
	Deleted End = "deleted"
	// Renominated means that the pod is nominated to another node, or to none, or is bound to another one:
	// it fits there, since something has become free.
	Renominated End = "renominated"
	// TimedOut means that the pod could not be bound in time.
	TimedOut End = "timeout"
	// Broken means that a pod of a higher priority has taken a device.
	Broken End = "broken"
)

// Ends are all of them.
var Ends = []End{Bound, Deleted, Renominated, TimedOut, Broken}

// maxWaiting is how many pods are remembered that may have been refused because of one hold. Others
// are tried again when something else happens, or after some minutes.
const maxWaiting = 1024

// Hold is what is held for a pod.
type Hold struct {
	Pod  *v1.Pod
	Node string
	// Devices are the results of an allocation for all of the pod's claims that had none.
	Devices []resourceapi.DeviceRequestAllocationResult
	// Victims are the UIDs of the pods that were evicted for it, as far as they are known.
	Victims []types.UID
	// Timeout is after what time it ends.
	Timeout time.Duration
	// Retry has the pod tried again, in case that victims turn out not to be ending. nil for never.
	Retry func()
}

// Holds are those of a scheduler. It is safe for concurrent use.
type Holds struct {
	clock clock.WithDelayedExecution
	// ended is told of each that ends, without locks.
	ended func(Hold, End)

	// mutex guards what follows.
	mutex sync.Mutex
	byPod map[types.UID]*held
}

type held struct {
	Hold
	// timer ends the hold, retry has its pod tried again.
	timer, retry clock.Timer
	since        time.Time
	// wereFree is set once it was noticed that all is free.
	wereFree bool
	// waiting are pods from which the devices were kept, and how they are tried again.
	waiting map[types.UID]waiting
}

type waiting struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
}

// New returns holds that nobody has yet. ended may be nil.
func New(clock clock.WithDelayedExecution, ended func(Hold, End)) *Holds {
	if ended == nil {
		ended = func(Hold, End) {}
	}
	return &Holds{clock: clock, ended: ended, byPod: map[types.UID]*held{}}
}

// Keep holds devices for a pod from now on, and not what was held for it before.
func (h *Holds) Keep(hold Hold) {
	uid := hold.Pod.UID
	h.End(uid, Renominated)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	keeping := &held{
		Hold: hold, waiting: map[types.UID]waiting{}, since: h.clock.Now(),
		timer: h.clock.AfterFunc(hold.Timeout, func() { h.End(uid, TimedOut) }),
	}
	if hold.Retry != nil {
		keeping.retry = h.clock.AfterFunc(untilKnown, hold.Retry)
	}
	h.byPod[uid] = keeping
}

// End ends the hold of a pod, if it has one. Pods from which the devices were kept are tried again.
func (h *Holds) End(pod types.UID, how End) {
	h.mutex.Lock()
	ending := h.byPod[pod]
	delete(h.byPod, pod)
	h.mutex.Unlock()
	if ending == nil {
		return
	}
	if how != TimedOut {
		ending.timer.Stop()
	}
	if ending.retry != nil {
		ending.retry.Stop()
	}
	h.ended(ending.Hold, how)
	for _, waiting := range ending.waiting {
		waiting.activate(waiting.pod)
	}
}

// Of is what is held for a pod.
func (h *Holds) Of(pod types.UID) (hold Hold, ok bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if held := h.byPod[pod]; held != nil {
		return held.Hold, true
	}
	return Hold{}, false
}

// IsVictim tells whether a pod was just evicted for the hold of another one: for so long it may take until
// everybody knows that it is to end.
func (h *Holds) IsVictim(of, pod types.UID) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[of]
	return held != nil && h.clock.Since(held.since) < untilKnown && slices.Contains(held.Victims, pod)
}

// untilKnown is how long informers may be late.
const untilKnown = 30 * time.Second

// NoteFree notes that all is free that is held for a pod, and tells whether that was noted before.
func (h *Holds) NoteFree(pod types.UID) (before bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	held := h.byPod[pod]
	if held == nil {
		return true
	}
	before, held.wereFree = held.wereFree, true
	return before
}

// Count is how many there are.
func (h *Holds) Count() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.byPod)
}

// From are the holds that keep devices from a pod: those of other pods of the same or a higher priority,
// in the order of their names. When one of them ends, activate is called with the pod.
func (h *Holds) From(pod *v1.Pod, activate func(*v1.Pod)) []Hold {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var from []Hold
	for uid, held := range h.byPod {
		if uid == pod.UID || corev1helpers.PodPriority(held.Pod) < corev1helpers.PodPriority(pod) {
			continue
		}
		from = append(from, held.Hold)
		if len(held.waiting) < maxWaiting {
			held.waiting[pod.UID] = waiting{pod, activate}
		}
	}
	slices.SortFunc(from, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return from
}

// Taken tells that a pod has got devices for itself, which breaks the holds on them of other pods.
func (h *Holds) Taken(pod *v1.Pod, devices []structured.DeviceID) {
	var broken []types.UID
	h.mutex.Lock()
	for uid, held := range h.byPod {
		if uid != pod.UID && slices.ContainsFunc(held.Devices, func(result resourceapi.DeviceRequestAllocationResult) bool {
			return result.ShareID == nil && slices.Contains(devices, idOf(&result))
		}) {
			broken = append(broken, uid)
		}
	}
	h.mutex.Unlock()
	for _, uid := range broken {
		h.End(uid, Broken)
	}
}

// Observe takes notice of what became of a pod. It ends the hold of one that is bound, or that is not
// nominated to its node any more. before is the pod as it was, nil if that is not known.
func (h *Holds) Observe(before, pod *v1.Pod) {
	hold, ok := h.Of(pod.UID)
	if !ok {
		return
	}
	nominated := pod.Status.NominatedNodeName
	switch {
	case pod.Spec.NodeName == hold.Node:
		h.End(pod.UID, Bound)
	case pod.Spec.NodeName != "":
		h.End(pod.UID, Renominated)
	case nominated == hold.Node:
	case nominated != "", before != nil && before.Status.NominatedNodeName == hold.Node:
		// As long as it was not nominated yet, that is still to be written.
		h.End(pod.UID, Renominated)
	}
}

func idOf(result *resourceapi.DeviceRequestAllocationResult) structured.DeviceID {
	return structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
}
