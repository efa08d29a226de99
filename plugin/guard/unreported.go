// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// After a failed attempt, the scheduler writes the reason to the pod. A gated pod makes no attempt, so it would get no condition
// and no event. So such a pod is queued once, for an attempt that is refused with the reason:
//
//   1. A gated pod without a condition is stored ([unreported.wait]). Most pods pass the gate soon, because their claims are created or
//      compiled meanwhile.
//   2. After reportDelay the pod is activated and passes the gate ([unreported.passes]).
//   3. The attempt removes the pod ([unreported.done]).
//
// Each attempt writes a condition and an event, and the scheduler's API client allows some fifty requests a second. So the pods
// are queued one at a time, in turns of namespaces.

const (
	// reportDelay is the time that a gated pod waits without a condition. kube-controller-manager creates claims sooner.
	reportDelay = 5 * time.Second
	// reportInterval is the time after which the next pod of the same namespace may be queued to get its condition.
	reportInterval = 100 * time.Millisecond
	// reportIntervalOfAll is the time after which the next pod of any namespace may be queued to get its condition.
	reportIntervalOfAll = 50 * time.Millisecond
	// reportTimeout is the time after which a queued pod without an attempt is dropped, because its claim was deleted or allocated.
	reportTimeout = time.Minute
)

// unreported holds the gated pods that have no condition with the reason for their wait.
type unreported struct {
	byNamespace map[string]*unreportedOf
	pods        map[types.UID]*unreportedPod
	// next is the earliest time to queue another pod.
	next time.Time
}

// unreportedOf holds the pods of a namespace in the order of arrival.
type unreportedOf struct {
	order []*unreportedPod
	// compactAt is the length at which removed pods are deleted from the middle of the order.
	compactAt int
	// queued are the pods that were queued to get their condition.
	queued []*unreportedPod
	// next is the earliest time to queue another pod.
	next time.Time
}

type unreportedPod struct {
	entry
	// due is the time at which the pod is queued, and after that the time at which it is dropped.
	due time.Time
	// isQueued is true if the pod was activated for an attempt that is refused with the reason.
	isQueued bool
}

// wait adds a pod unless it has a condition that contains why. An empty why matches any condition.
func (t *unreported) wait(e entry, why string, now time.Time) {
	if t.pods[e.key] != nil || hasReason(e.pod, why) {
		return
	}
	if t.pods == nil {
		t.pods, t.byNamespace = map[types.UID]*unreportedPod{}, map[string]*unreportedOf{}
	}
	of := t.byNamespace[e.pod.Namespace]
	if of == nil {
		of = &unreportedOf{}
		t.byNamespace[e.pod.Namespace] = of
	}
	waits := &unreportedPod{entry: e.minimal(), due: now.Add(reportDelay)}
	t.pods[e.key] = waits
	of.order = append(of.order, waits)
	if len(of.order) > of.compactAt {
		of.order = slices.DeleteFunc(of.order, t.isGone)
		of.compactAt = 2*len(of.order) + 1<<10
	}
}

// isGone reports whether a pod was removed or replaced by another pod of its group.
func (t *unreported) isGone(pod *unreportedPod) bool { return t.pods[pod.key] != pod }

// passes reports whether a pod must pass the gate now.
func (t *unreported) passes(key types.UID) bool {
	untold := t.pods[key]
	return untold != nil && untold.isQueued
}

// done removes a pod whose attempt started or was refused.
func (t *unreported) done(key types.UID) { delete(t.pods, key) }

// due returns the pod to queue now, if any. next is the time at which the next pod may be queued, zero for never. Among
// namespaces with a due pod, due chooses the namespace that was served least recently.
func (t *unreported) due(now time.Time) (queue []entry, next time.Time) {
	var turn *unreportedOf
	for namespace, of := range t.byNamespace {
		of.queued = t.skip(of.queued, func(pod *unreportedPod) bool { return !pod.due.After(now) })
		of.order = t.skip(of.order, func(*unreportedPod) bool { return false })
		switch {
		case len(of.order) > 0:
			at := later(of.order[0].due, of.next)
			next = earlier(next, later(at, t.next))
			if !at.After(now) && (turn == nil || of.next.Before(turn.next)) {
				turn = of
			}
		case len(of.queued) == 0:
			delete(t.byNamespace, namespace)
		}
		if len(of.queued) > 0 {
			next = earlier(next, of.queued[0].due)
		}
	}
	if turn == nil || t.next.After(now) {
		return nil, next
	}
	first := turn.order[0]
	first.isQueued, first.due = true, now.Add(reportTimeout)
	turn.order, turn.queued = turn.order[1:], append(turn.queued, first)
	turn.next, t.next = now.Add(reportInterval), now.Add(reportIntervalOfAll)
	return []entry{first.entry}, t.next
}

// skip removes pods from the front of a list while they are gone or drop is true.
func (t *unreported) skip(pods []*unreportedPod, drop func(*unreportedPod) bool) []*unreportedPod {
	for len(pods) > 0 && (t.isGone(pods[0]) || drop(pods[0])) {
		if !t.isGone(pods[0]) {
			delete(t.pods, pods[0].key)
		}
		pods[0] = nil
		pods = pods[1:]
	}
	return pods
}

// MustReport records that a pod is gated for the reason why. It returns true if the pod must be queued anyway, for an attempt that
// is refused and writes the reason to the pod. If it returns false, the guard activates the pod after a while, unless a condition
// of the pod contains why. MustReport runs under the lock of the scheduling queue and takes microseconds.
func (g *Guard) MustReport(pod *v1.Pod, why string, activate func(*v1.Pod)) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	e := newEntry(pod, activate)
	if g.unreported.passes(e.key) {
		return true
	}
	now := g.clock.Now()
	g.unreported.wait(e, why, now)
	g.lookAt(now.Add(reportDelay), now)
	return false
}

// Refused implements [Turns]. A program that calls [Guard.Failed] need not call it.
func (g *Guard) Refused(pod *v1.Pod) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.unreported.done(keyOf(pod))
}
